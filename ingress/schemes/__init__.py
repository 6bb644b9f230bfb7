"""Signature schemes: one small class each, told apart by the endpoint's setting."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from ingress.messages import Request
from ingress.public_keys import PublicKey


@dataclass(frozen=True, slots=True)
class Vouched:
    """A request that is its sender's own.

    Args:
        key: the key that vouches for it.
        message_id: the id that was signed beside the body; None where the scheme has none.
    """

    key: PublicKey
    message_id: str | None


class Scheme(Protocol):
    """How a sender proves that a request is its own."""

    @property
    def headers(self) -> Sequence[str]:
        """The headers of the proof, in lower case: they stay with the event, so that it can be checked again."""
        ...

    def verify(self, request: Request, keys: Sequence[PublicKey], now: datetime) -> Vouched:
        """Who vouches for the request at this moment; raises Refused."""
        ...
