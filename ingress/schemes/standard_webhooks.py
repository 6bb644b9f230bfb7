"""The Standard Webhooks scheme with Ed25519 (version tag `v1a`).

Source: the Standard Webhooks specification: the headers webhook-id, webhook-timestamp and webhook-signature, where
the last holds entries `v1a,<base64>` separated by spaces, over `{id}.{timestamp}.{body}`.
"""

import re
from collections.abc import Sequence
from datetime import datetime

from ingress import strict_base64
from ingress.messages import Request
from ingress.public_keys import PublicKey
from ingress.refusals import Refused
from ingress.schemes import Vouched
from ingress.schemes.signatures import SIGNATURE_BYTES, only, vouching_key
from schemas.door import WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP
from schemas.headers import WEBHOOK_HEADERS

_TAG = b"v1a,"
# Whole values only: `$` would let a line feed pass behind them.
_ID = re.compile(WEBHOOK_ID.encode())
_TIMESTAMP = re.compile(WEBHOOK_TIMESTAMP.encode())
_SIGNATURES = re.compile(WEBHOOK_SIGNATURE.encode())


class StandardWebhooks:
    """Verifies one request against the keys.

    Args:
        tolerance_seconds: largest allowed distance of webhook-timestamp from now, both ways.
        max_signatures: most entries of one request; each costs a verification a key.
        max_id_bytes: longest webhook-id.
    """

    def __init__(self, *, tolerance_seconds: float, max_signatures: int, max_id_bytes: int) -> None:
        self._tolerance_seconds = tolerance_seconds
        self._max_signatures = max_signatures
        self._max_id_bytes = max_id_bytes

    @property
    def headers(self) -> Sequence[str]:
        """All three: without id and timestamp the signature cannot be checked again."""
        return WEBHOOK_HEADERS

    def verify(self, request: Request, keys: Sequence[PublicKey], now: datetime) -> Vouched:
        """Who vouches for the request, with its webhook-id; raises Refused.

        The age is judged last, so that reason `timestamp` always means an authentic request.
        """
        message_id = only(request.head, "webhook-id", "id")
        if len(message_id) > self._max_id_bytes or not _ID.fullmatch(message_id):
            raise Refused("id", "webhook-id is too long or has characters that are not printable ASCII")
        timestamp = only(request.head, "webhook-timestamp", "timestamp_malformed")
        if not _TIMESTAMP.fullmatch(timestamp):
            raise Refused("timestamp_malformed", "webhook-timestamp is not a number of seconds")
        signatures = self._signatures(only(request.head, "webhook-signature", "signature"))
        signed = b".".join((message_id, timestamp, request.body))
        key = vouching_key(signed, signatures, keys, now)
        distance_seconds = now.timestamp() - int(timestamp)
        if abs(distance_seconds) > self._tolerance_seconds:
            raise Refused(
                "timestamp",
                f"{message_id.decode('ascii')} is authentic by key {key.id}, but its webhook-timestamp is "
                f"{distance_seconds:.0f} s old; allowed are "
                f"{self._tolerance_seconds:g} s both ways (tolerance_seconds, TALLYHOOK_INGRESS_TOLERANCE_SECONDS)",
            )
        return Vouched(key, message_id.decode("ascii"))

    def _signatures(self, value: bytes) -> list[bytes]:
        if not _SIGNATURES.fullmatch(value):
            raise Refused("signature", "webhook-signature has characters that are not printable ASCII")
        entries = [entry for entry in value.split(b" ") if entry]
        if len(entries) > self._max_signatures:
            raise Refused("signature", f"{len(entries)} signatures; at most {self._max_signatures} are tried")
        # Entries of other schemes may stand beside ours: they are passed over, not refused.
        decoded = [strict_base64.decode(entry[len(_TAG) :]) for entry in entries if entry.startswith(_TAG)]
        usable = [signature for signature in decoded if signature is not None and len(signature) == SIGNATURE_BYTES]
        if not usable:
            raise Refused("signature", "no v1a entry is the base64 of 64 bytes")
        return usable
