"""What the local stack is made of: services with one small interface, and the progress they report."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a start or a download, for a progress line.

    `done` and `total` are bytes while something is downloaded, else None.
    """

    step: str
    message: str
    done: int | None = None
    total: int | None = None


Report = Callable[[Progress], None]


class Service(Protocol):
    """One server of the local stack."""

    name: str

    @property
    def pid(self) -> int | None:
        """The real server process; None for given servers, containers, and while nothing runs."""

    def start(self) -> None:
        """Returns when the server answers; repairs what a crash left. Raises LocalStackError."""

    def stop(self) -> None:
        """Ends the server cleanly within a bound, then by force. Does nothing when it does not run."""

    def running(self) -> bool:
        """Whether the process or container lives (cheap; says nothing about its health)."""
