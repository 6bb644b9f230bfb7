"""How much of bodies the door holds at once, all connections together: nobody has to sign to make it hold some."""

from collections.abc import Callable

from ingress.refusals import Refused


class HeldBytes:
    """Counts the bytes of bodies from their arrival to their answer, and keeps them within a bound.

    Args:
        max_bytes: of all connections together; no less than the largest body.
        make_room: gives up the body that has been on its way longest; false when there is none.
    """

    def __init__(self, max_bytes: int, make_room: Callable[[], bool]) -> None:
        self._max_bytes, self._make_room = max_bytes, make_room
        self.bytes = 0

    def take(self, count: int) -> None:
        """So many more are held; raises Refused when there is no room and none can be made."""
        while self.bytes + count > self._max_bytes:
            if not self._make_room():
                raise Refused("in_flight", f"{self.bytes} bytes of bodies are held, allowed are {self._max_bytes}")
        self.bytes += count

    def give_back(self, count: int) -> None:
        """So many are held no more."""
        self.bytes -= count
