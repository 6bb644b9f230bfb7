"""The tables of a TOML file, read strictly: what is missing, of another type or unknown is named with its place.

No message repeats a value: a secret that was put in the wrong place must not end in a log.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from tallyhook.errors import SettingsError

T = TypeVar("T", bound=str)

_SHOWABLE = re.compile(r"^[A-Za-z0-9_-]{1,40}$")
_POSITION = re.compile(r"at line \d+, column \d+|at end of document")


class TableError(SettingsError):
    """A file is not what it should be; the message names file, table and member."""


class Table:
    """One table; each member is asked for once, and `finish` refuses those that nobody asked for.

    Args:
        place: file and table, for messages.
        members: as TOML gave them.
    """

    def __init__(self, place: str, members: Mapping[str, object]) -> None:
        self.place = place
        self._members = members
        self._asked: set[str] = set()

    def text(self, name: str, like: re.Pattern[str], meaning: str) -> str | None:
        """A text that matches as a whole, None where absent; `meaning` says in words what matches."""
        value = self._ask(name)
        if value is None:
            return None
        if not isinstance(value, str) or not like.fullmatch(value):
            raise self.wrong(name, f"must be {meaning}")
        return value

    def choice(self, name: str, allowed: Sequence[T]) -> T:
        """One of these texts; the first where absent."""
        value = self._ask(name)
        if value is None:
            return allowed[0]
        for one in allowed:
            if one == value:
                return one
        raise self.wrong(name, f"must be {' or '.join(allowed)}")

    def has(self, name: str) -> bool:
        """Whether a member is there, whatever it is."""
        return name in self._members

    def whole(self, name: str, low: int, high: int, unit: str) -> int | None:
        """A whole number within the bounds, None where absent."""
        value = self._ask(name)
        if value is None:
            return None
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(name, f"must be {low}..{high} ({unit})")
        return value

    def instant(self, name: str) -> datetime | None:
        """A moment with its offset from UTC, None where absent."""
        value = self._ask(name)
        if value is None:
            return None
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise self.wrong(name, "must be a date and time with its offset, such as 2026-03-01T00:00:00Z, unquoted")
        return value

    def flag(self, name: str) -> bool:
        """True or false; false where absent."""
        value = self._ask(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong(name, "must be true or false")
        return value

    def wrong(self, name: str, fault: str) -> TableError:
        """The error that says what is wrong with a member."""
        return TableError(f"{self.place}, {name}: {fault}")

    def finish(self) -> None:
        """Raises TableError for a member that nobody asked for: most often a typing error."""
        for name in self._members:
            if name not in self._asked:
                raise self.wrong(_shown(name), f"is unknown; known are {', '.join(sorted(self._asked))}")

    def _ask(self, name: str) -> object:
        self._asked.add(name)
        return self._members.get(name)


def tables_of(content: bytes, path: Path, name: str, *, max_bytes: int, max_tables: int) -> list[Table]:
    """The tables `[[name]]` of a file, in order; raises TableError where it holds none, too many or anything else."""
    if len(content) > max_bytes:
        raise TableError(f"{path}: larger than {max_bytes} bytes")
    try:
        document: dict[str, object] = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise TableError(f"{path}: not UTF-8 text") from None
    except (ValueError, RecursionError) as failure:  # also numbers of thousands of digits, and arrays as deep
        position = _POSITION.search(str(failure))
        raise TableError(f"{path}: not TOML ({position.group() if position else 'somewhere'})") from None
    for member in document:
        if member != name:
            raise TableError(f"{path}, {_shown(member)}: is unknown; the file holds tables [[{name}]]")
    found = document.get(name)
    if not isinstance(found, list) or not all(isinstance(members, dict) for members in found) or not found:
        raise TableError(f"{path}: holds no table [[{name}]]")
    if len(found) > max_tables:
        raise TableError(f"{path}: {len(found)} tables [[{name}]]; at most {max_tables} are allowed")
    return [Table(f"{path}, [[{name}]] {number}", members) for number, members in enumerate(found, start=1)]


def _shown(name: str) -> str:
    return name if _SHOWABLE.match(name) else "a member"
