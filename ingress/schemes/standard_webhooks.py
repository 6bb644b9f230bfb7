"""The Standard Webhooks scheme with Ed25519 (version tag `v1a`).

Source: the Standard Webhooks specification: the headers webhook-id, webhook-timestamp and webhook-signature, where
the last holds entries `v1a,<base64>` separated by spaces, over `{id}.{timestamp}.{body}`.
"""

import re
from collections.abc import Sequence

from nacl.exceptions import BadSignatureError

from ingress import strict_base64
from ingress.keyring import PublicKey
from ingress.messages import Head, Request
from ingress.refusals import RefusalReason, Refused

SIGNATURE_BYTES = 64
_TAG = b"v1a,"
_ID = re.compile(rb"^[\x21-\x7e]+$")
_TIMESTAMP = re.compile(rb"^[0-9]{1,12}$")
_SIGNATURES = re.compile(rb"^[\x20-\x7e]+$")


class StandardWebhooks:
    """Verifies one request against the active keys.

    Args:
        tolerance_seconds: largest allowed distance of webhook-timestamp from now, both ways.
        max_signatures: most entries of one request; each costs a verification a key.
        max_id_bytes: longest webhook-id.
    """

    def __init__(self, *, tolerance_seconds: float, max_signatures: int, max_id_bytes: int) -> None:
        self._tolerance_seconds = tolerance_seconds
        self._max_signatures = max_signatures
        self._max_id_bytes = max_id_bytes

    def verify(self, request: Request, keys: Sequence[PublicKey], now_seconds: float) -> str:
        """The id of the key that vouches for the request; raises Refused.

        The age is judged last, so that reason `timestamp` always means an authentic request.
        """
        message_id = _only(request.head, b"webhook-id", "id")
        if len(message_id) > self._max_id_bytes or not _ID.match(message_id):
            raise Refused("id", "webhook-id is too long or has characters that are not printable ASCII")
        timestamp = _only(request.head, b"webhook-timestamp", "timestamp_malformed")
        if not _TIMESTAMP.match(timestamp):
            raise Refused("timestamp_malformed", "webhook-timestamp is not a number of seconds")
        signatures = self._signatures(_only(request.head, b"webhook-signature", "signature"))
        signed = b".".join((message_id, timestamp, request.body))
        key_id = _vouching(signed, signatures, keys)
        distance_seconds = now_seconds - int(timestamp)
        if abs(distance_seconds) > self._tolerance_seconds:
            raise Refused(
                "timestamp",
                f"authentic by key {key_id}, but webhook-timestamp is {distance_seconds:.0f} s old; "
                f"allowed are {self._tolerance_seconds:g} s both ways (TALLYHOOK_INGRESS_TOLERANCE_SECONDS)",
            )
        return key_id

    def _signatures(self, value: bytes) -> list[bytes]:
        if not _SIGNATURES.match(value):
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


def _only(head: Head, name: bytes, reason: RefusalReason) -> bytes:
    values = head.all(name)
    if len(values) != 1:
        raise Refused(reason, f"{name.decode()} is {'repeated' if values else 'missing'}")
    return values[0]


def _vouching(signed: bytes, signatures: Sequence[bytes], keys: Sequence[PublicKey]) -> str:
    for signature in signatures:
        for key in keys:
            try:
                key.key.verify(signed, signature)
            except BadSignatureError:
                continue
            return key.id
    raise Refused("signature", f"none of {len(signatures)} signatures fits one of {len(keys)} keys")
