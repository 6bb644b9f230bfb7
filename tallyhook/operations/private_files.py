"""Files that only their owner may read, written whole or not at all."""

import os
import secrets
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replaces the file's content; mode 0600 from the first moment on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(path)


def kept_secret(path: Path) -> str:
    """A random secret, made once and kept in this file."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(32) + "\n")
    return path.read_text(encoding="utf-8").strip()
