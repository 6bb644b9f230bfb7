"""Ids of assorted shapes: nobody may read a meaning out of one, or expect a length.

Ids of events are visible ASCII, because a header carries them; the others may hold whatever text can hold, save
slashes and control characters, so that they fit into the path of a URL.
"""

import random
from collections.abc import Callable

_BASE32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_THAI = "กขคงจชซดตถทนบปผพมยรลวศสหอ"
_HEX = "0123456789abcdef"
_PREFIXES = ("evt_", "dep_", "wdr_", "btxn_", "leg_", "clm_")


class Names:
    """Gives ids that no other world and nobody else in this one has (60 random bits at least).

    Args:
        rng: the only source of chance.
        plain: whether all of them are of the shape that the gateway's own pages show.
    """

    def __init__(self, rng: random.Random, *, plain: bool = False) -> None:
        self._rng, self._plain = rng, plain

    def event(self) -> str:
        """An event's id, visible ASCII."""
        return self._shaped("evt_", (self._ulid, self._ulid, self._uuid, self._misleading, self._punctuated))

    def deposit(self) -> str:
        """A deposit order's id."""
        return self._order("dep_")

    def withdrawal(self) -> str:
        """A withdrawal order's id."""
        return self._order("wdr_")

    def stranger(self) -> str:
        """An id of an object of a kind that nobody knows."""
        return self._order("lnk_")

    def transaction(self) -> str:
        """A balance transaction's id."""
        return self._shaped("btxn_", (self._ulid, self._ulid, self._uuid, self._misleading))

    def leg(self) -> str:
        """The name of a chunk."""
        return self._shaped("leg_", (self._ulid, self._uuid, self._thai))

    def claim(self) -> str:
        """An overpayment claim's id."""
        return self._shaped("clm_", (self._ulid, self._uuid, self._thai))

    def ours(self, prefix: str) -> str:
        """An id of the merchant's own, such as `u_1K3PBQ7X4M2T`."""
        return prefix + self._draw(_BASE32, 12)

    def _order(self, prefix: str) -> str:
        return self._shaped(
            prefix, (self._ulid, self._ulid, self._uuid, self._misleading, self._thai, self._quoted, self._long)
        )

    def _shaped(self, prefix: str, shapes: tuple[Callable[[str], str], ...]) -> str:
        return self._ulid(prefix) if self._plain else self._rng.choice(shapes)(prefix)

    def _draw(self, alphabet: str, count: int) -> str:
        return "".join(self._rng.choices(alphabet, k=count))

    def _ulid(self, prefix: str) -> str:
        return f"{prefix}01K{self._draw(_BASE32, 23)}"

    def _uuid(self, _prefix: str) -> str:
        return "-".join(self._draw(_HEX, count) for count in (8, 4, 4, 4, 12))

    def _misleading(self, _prefix: str) -> str:
        return self._rng.choice(_PREFIXES) + self._draw(_BASE32, 16)

    def _punctuated(self, prefix: str) -> str:
        return f"{prefix}:{self._draw(_BASE32, 8)}/{self._draw(_BASE32, 8)}+~='\"%s"

    def _thai(self, _prefix: str) -> str:
        return f"รายการ-{self._draw(_THAI, 16)}"

    def _quoted(self, prefix: str) -> str:
        return f'{prefix} it\'s "{self._draw(_BASE32, 16)}" 100% {{}}'

    def _long(self, prefix: str) -> str:
        return prefix + self._draw(_BASE32, 200)
