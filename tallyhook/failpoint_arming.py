"""Arms failpoints and kills the process at them. For tests: the production image is built without this module.

There are two ways to say where:

- `name:after_n[:signal]`, several with commas: each process dies at the place once it has passed there n times.
- `@` and a folder: each file in it that is named for a failpoint holds `after_n[:signal]` and lets one process die
  once. The process takes the file away before it dies, so that its successor goes on, and leaves another one,
  `NAME.PID.died`, behind: these can be counted. A file may come at any time.

The signal is KILL, which is meant where none is named, STOP or TERM.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast, get_args

from tallyhook import logs
from tallyhook.errors import SettingsError
from tallyhook.failpoints import POINTS_VARIABLE, Armed, Failpoint

NAMES: Final = frozenset(get_args(Failpoint))
SIGNALS: Final = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP, "TERM": signal.SIGTERM}
PASSES_MAX: Final = 1_000_000
DIED: Final = "died"

_log = logs.logger(__name__)


@dataclass(frozen=True, slots=True)
class Death:
    """How a process ends at a failpoint.

    Args:
        after: how often the place is passed before.
        signal: what the process sends itself.
    """

    after: int
    signal: signal.Signals


def from_text(text: str) -> Armed:
    """What the value of TALLYHOOK_FAILPOINTS means; raises SettingsError."""
    if text.startswith("@"):
        folder = Path(text[1:])
        if not folder.is_dir():
            raise SettingsError(f"{POINTS_VARIABLE}={text}: there is no such folder")
        return Folder(folder)
    deaths: dict[str, Death] = {}
    for part in text.split(","):
        name, _, rest = part.strip().partition(":")
        if name not in NAMES:
            raise SettingsError(f"{POINTS_VARIABLE}={text}: {name!r} is no failpoint; tallyhook/failpoints.py has them")
        deaths[name] = read_death(rest, where=f"{POINTS_VARIABLE}={text}")
    return Listed(deaths)


def read_death(text: str, *, where: str) -> Death:
    """Reads `after_n[:signal]`; raises SettingsError that says where it stood."""
    number, _, name = text.strip().partition(":")
    ends_by = SIGNALS.get(name or "KILL")
    if ends_by is None or not (number.isascii() and number.isdigit()) or int(number) > PASSES_MAX:
        raise SettingsError(
            f"{where}: {text!r} must be after_n[:signal], 0..{PASSES_MAX} (passes) and {' or '.join(SIGNALS)}"
        )
    return Death(int(number), ends_by)


class Listed:
    """The same deaths for every process with this environment."""

    def __init__(self, deaths: Mapping[str, Death]) -> None:
        self._deaths, self._passed, self._lock = deaths, Counter[str](), threading.Lock()

    def reached(self, name: Failpoint, last: Callable[[], object] | None) -> None:
        """Counts the pass, or dies."""
        death = self._deaths.get(name)
        if death is None:
            return
        with self._lock:
            self._passed[name] += 1
            if self._passed[name] <= death.after:
                return
        die(name, death, last)


class Folder:
    """Deaths that are met once each, by whichever process comes first."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._passed, self._lock = folder, Counter[str](), threading.Lock()

    def reached(self, name: Failpoint, last: Callable[[], object] | None) -> None:
        """Looks whether the place is armed now; counts the pass, or dies."""
        file = self._folder / name
        with self._lock:
            try:
                death = read_death(file.read_text(encoding="utf-8"), where=str(file))
            except FileNotFoundError:
                self._passed.pop(name, None)
                return
            self._passed[name] += 1
            if self._passed[name] <= death.after:
                return
            try:
                file.rename(file.with_name(f"{name}.{os.getpid()}.{DIED}"))
            except FileNotFoundError:
                return  # another process of the same stage was there first
            # The lock is held to the end, so that no other thread passes by a process that is dying.
            die(name, death, last)


def armed(folder: Path) -> set[Failpoint]:
    """The failpoints of a folder at which somebody is still to die."""
    return {cast("Failpoint", file.name) for file in folder.iterdir() if file.name in NAMES}


def deaths_in(folder: Path) -> Counter[str]:
    """How many processes died at each failpoint of a folder."""
    return Counter(file.name.rsplit(".", 2)[0] for file in folder.glob(f"*.*.{DIED}"))


def arm_in(folder: Path, name: Failpoint, death: str) -> None:
    """Arms a failpoint of a folder; whoever reads the file meets it whole."""
    new = folder / f".{name}.new"
    new.write_text(death, encoding="utf-8")
    new.rename(folder / name)


def die(name: Failpoint, death: Death, last: Callable[[], object] | None) -> None:
    """Ends or stops this process at once; returns only after a STOP that somebody ended, or a TERM."""
    _log.warning("failpoint: the process ends itself", failpoint=name, signal=death.signal.name)
    if last is not None:
        # It dies either way: what is left undone is the test's very subject.
        with suppress(Exception):
            last()
    os.kill(os.getpid(), death.signal)
