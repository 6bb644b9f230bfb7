"""The gateway's keys: which one signs now, and the file in which the receiver finds the public ones."""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from tallyhook.clock import Clock
from tallyhook.errors import TallyhookError, UsageError
from tallyhook.gateway.signing import PUBLIC_PREFIX, SigningKey

KEY_LEAD_SECONDS: Final = 10.0
"""How long a new key must have been public before it signs: receivers look for changed keys every few seconds."""

MAX_KEYRING_BYTES: Final = 65_536
_TABLE = re.compile(r"^\s*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rotation:
    """A second key that signs from a virtual moment on.

    Args:
        key: the second key.
        at: the virtual moment.
    """

    key: SigningKey
    at: datetime


class Signer:
    """Signs each attempt at wall time, with the key of the virtual moment.

    Args:
        key: the one that signs from the beginning.
        rotation: None: the key is never replaced.
        clock: the wall's.
    """

    def __init__(self, key: SigningKey, clock: Clock, rotation: Rotation | None = None) -> None:
        self._key, self._clock, self._rotation = key, clock, rotation

    def key_at(self, moment: datetime) -> SigningKey:
        """The key that signs at this virtual moment."""
        rotation = self._rotation
        return self._key if rotation is None or moment < rotation.at else rotation.key

    def sign(self, event_id: str, body: bytes, moment: datetime) -> tuple[SigningKey, dict[str, str]]:
        """The key used and the headers of one attempt, made now in wall time, at this virtual moment."""
        key = self.key_at(moment)
        return key, key.sign(event_id, int(self._clock.now().timestamp()), body)


def publish_keys(path: Path, keys: Sequence[SigningKey]) -> None:
    """Adds the public keys that the keyring file lacks, one a line; the file is replaced whole and keeps its mode.

    Raises:
        UsageError: the file holds tables, to which a line cannot be added.
        TallyhookError: it cannot be read or written.
    """
    try:
        text = _existing(path)
        missing = [key for key in keys if key.public_text() not in text]
        if not missing:
            return
        if _TABLE.search(text):
            raise UsageError(f"{path} holds TOML tables: add the public keys there by hand, or name a file of lines")
        if text and not text.endswith("\n"):
            text += "\n"
        _replace(path, text + "".join(f"sim-{key.key_id}={key.public_text()}\n" for key in missing))
    except (OSError, UnicodeDecodeError) as failure:
        raise TallyhookError(f"keyring file {path} cannot be used: {failure}") from failure


def _existing(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as source:
        content = source.read(MAX_KEYRING_BYTES + 1)
    if len(content) > MAX_KEYRING_BYTES or (content.strip() and PUBLIC_PREFIX.encode() not in content):
        raise UsageError(f"{path} is no file of public keys")
    return content.decode()


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.chmod(mode)
    draft.replace(path)
