"""Small files of the state directory and the cache: written whole or not at all."""

import os
from collections import deque
from pathlib import Path

TAIL_BYTES = 64 * 1024


def write_atomically(path: Path, text: str) -> None:
    """Replaces the file's content; after a crash there is the old or the new content, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("w", encoding="utf-8") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())
    draft.replace(path)


def tail(path: Path, lines: int = 8) -> str:
    """The last lines of a log, for an error message; empty when there is none."""
    try:
        with path.open("rb") as handle:
            handle.seek(max(0, path.stat().st_size - TAIL_BYTES))
            kept = deque(handle.read().decode(errors="replace").splitlines(), maxlen=lines)
    except OSError:
        return ""
    return "\n".join(kept)
