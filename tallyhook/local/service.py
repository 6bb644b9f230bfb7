"""What the local stack is made of: services with one small interface, and the progress they report."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of a start or a download, for a progress line.

    `done` and `total` are bytes while something is downloaded, else None. Reports come from several threads.
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
    def address(self) -> str:
        """What clients connect to: host:port of a broker, or a libpq URI.

        The same over restarts, unless another program took the port while the whole stack was down.
        """

    @property
    def pid(self) -> int | None:
        """The real server process; None for given servers, containers, and while nothing runs."""

    def start(self) -> None:
        """Returns when the server answers; repairs what a crash left. Raises LocalStackError.

        Does nothing when it runs. The address stays what it was.
        """

    def stop(self) -> None:
        """Ends the server cleanly within a bound, then by force; also ends a start that is under way elsewhere."""

    def running(self) -> bool:
        """Whether the process or container lives (cheap; says nothing about its health)."""


class OwnServer(Service, Protocol):
    """A server that the stack itself runs."""

    download_seconds: float

    def prepare(self) -> None:
        """Downloads what is needed, ends what a crash left on the data, and renews ports that are taken.

        Only for the start of the whole stack, when no client holds an address yet. Raises LocalStackError.
        """

    def discard(self) -> None:
        """Removes the data that lives outside of the state directory; the server must be stopped."""
