"""A signature over the body's bytes alone, in one header (Ed25519, RFC 8032).

Nothing but the body is signed, so there is no message id and no time: a request that somebody overheard can be sent
again for ever. Only the event's own id tells it from a new one.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args

from ingress import strict_base64
from ingress.messages import Request
from ingress.public_keys import PublicKey
from ingress.refusals import Refused
from ingress.schemes import Vouched
from ingress.schemes.signatures import SIGNATURE_BYTES, only, vouching_key

Encoding = Literal["base64", "hex"]
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)

_SEPARATORS = re.compile(rb"[ ,]+")
_HEX = re.compile(rb"(?:[0-9a-f]{2})*|(?:[0-9A-F]{2})*")


class RawBody:
    """Verifies one request against the keys.

    Args:
        header: which header carries the signature, in lower case; several stand in it with blanks or commas between.
        encoding: how a signature is written.
        max_signatures: most entries of one request; each costs a verification a key.
    """

    def __init__(self, *, header: str, encoding: Encoding, max_signatures: int) -> None:
        self._header, self._encoding, self._max_signatures = header, encoding, max_signatures

    @property
    def headers(self) -> Sequence[str]:
        """The one that carries the signature."""
        return (self._header,)

    def verify(self, request: Request, keys: Sequence[PublicKey], now: datetime) -> Vouched:
        """Who vouches for the body; raises Refused."""
        value = only(request.head, self._header, "signature")
        entries = [entry for entry in _SEPARATORS.split(value) if entry]
        if len(entries) > self._max_signatures:
            raise Refused("signature", f"{len(entries)} signatures; at most {self._max_signatures} are tried")
        decoded = [self._decode(entry) for entry in entries]
        usable = [signature for signature in decoded if signature is not None and len(signature) == SIGNATURE_BYTES]
        if not usable:
            raise Refused("signature", f"{self._header} holds no {self._encoding} of 64 bytes")
        return Vouched(vouching_key(request.body, usable, keys, now), None)

    def _decode(self, entry: bytes) -> bytes | None:
        if self._encoding == "base64":
            return strict_base64.decode(entry)
        return bytes.fromhex(entry.decode("ascii")) if _HEX.fullmatch(entry) else None
