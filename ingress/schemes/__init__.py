"""Signature schemes: one small class each, told apart by the endpoint's setting."""

from collections.abc import Sequence
from typing import Protocol

from ingress.keyring import PublicKey
from ingress.messages import Request


class Scheme(Protocol):
    """How a sender proves that a request is its own."""

    def verify(self, request: Request, keys: Sequence[PublicKey], now_seconds: float) -> str:
        """The id of the key that vouches for the request; raises Refused."""
        ...
