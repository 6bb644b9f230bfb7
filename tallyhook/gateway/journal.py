"""What a simulator has delivered so far, so that the next one of the same world goes on instead of beginning anew."""

import hashlib
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

from tallyhook.errors import TallyhookError
from tallyhook.gateway.world.model import World

_HEADING: Final = "tallyhook-gateway-journal 1 "
MAX_LINE_CHARACTERS: Final = 1024


class Journal:
    """A file with a line for each event that was accepted for the first time: virtual moment and id.

    A line may be lost when the process is killed: then its event is sent once more, which is allowed. A journal of
    another world is begun anew.

    Args:
        path: made where it is missing.

    Attributes:
        accepted: ids of the events that need not be sent again.
        reached: the latest virtual moment of them; the world's start where there are none.

    Raises:
        TallyhookError: the file cannot be read or written.
    """

    def __init__(self, path: Path, world: World) -> None:
        self.accepted: set[str] = set()
        self.reached = world.started_at
        self._path = path
        heading = _HEADING + _fingerprint(world)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            whole = self._read(heading)
            self._file: TextIO = path.open("a" if whole else "w", encoding="ascii", newline="\n")
            if not whole:
                self._write(heading)
        except (OSError, ValueError) as failure:
            raise TallyhookError(f"journal {path} cannot be used: {failure}; remove it to begin anew") from failure

    def note(self, event_id: str, moment: datetime) -> None:
        """One more event is accepted; the line is with the system when this returns. Raises TallyhookError."""
        if event_id in self.accepted:
            return
        self.accepted.add(event_id)
        self.reached = max(self.reached, moment)
        try:
            self._write(f"{moment.isoformat()} {event_id}")
        except OSError as failure:
            raise TallyhookError(f"journal {self._path} cannot be written: {failure.strerror}") from failure

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()

    def _read(self, heading: str) -> bool:
        """Takes over the lines of this world's journal; false where there is none. A torn last line is cut off."""
        if not self._path.exists():
            return False
        with self._path.open("rb+") as source:
            first = source.readline(MAX_LINE_CHARACTERS)
            if first != heading.encode() + b"\n":
                return False
            end = source.tell()
            for line in _lines(source.read()):
                moment, _, event_id = line.decode("ascii").partition(" ")
                self.accepted.add(event_id)
                self.reached = max(self.reached, datetime.fromisoformat(moment))
                end += len(line) + 1
            source.truncate(end)
            os.fsync(source.fileno())
        return True


def _lines(content: bytes) -> Iterator[bytes]:
    whole, newline, _torn = content.rpartition(b"\n")
    if newline:
        yield from whole.split(b"\n")


def _fingerprint(world: World) -> str:
    """Differs where any event of the world does."""
    digest = hashlib.sha256(world.merchant_id.encode())
    for event in world.events:
        digest.update(f"{event.id}\0{event.never_delivered}\0".encode())
        digest.update(hashlib.sha256(event.body).digest())
    return digest.hexdigest()
