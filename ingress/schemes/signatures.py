"""What the schemes share: the one header that carries a proof, and the key that fits a signature."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from nacl.exceptions import BadSignatureError

from ingress.messages import Head
from ingress.public_keys import PublicKey
from ingress.refusals import RefusalReason, Refused
from schemas.door import MAX_PROOF_BYTES

SIGNATURE_BYTES = 64


def only(head: Head, name: str, reason: RefusalReason) -> bytes:
    """The value of a header that must stand there once, within its bound; raises Refused."""
    values = head.all(name.encode("ascii"))
    if len(values) != 1:
        raise Refused(reason, f"{name} is {'repeated' if values else 'missing'}")
    if len(values[0]) > MAX_PROOF_BYTES:
        raise Refused(reason, f"{name} is longer than {MAX_PROOF_BYTES} bytes")
    return values[0]


def vouching_key(signed: bytes, signatures: Sequence[bytes], keys: Sequence[PublicKey], now: datetime) -> PublicKey:
    """The key that fits one of the signatures; raises Refused.

    A key for tests counts only where no other fits: a request that both have signed is as good as one of the other.
    Keys outside of their window are tried last, because an authentic request that is refused must be told from a
    forgery.
    """
    valid = [key for key in keys if key.valid_at(now)]
    found = _fitting(signed, signatures, (key for key in valid if not key.test_only))
    found = found or _fitting(signed, signatures, (key for key in valid if key.test_only))
    if found is not None:
        return found
    other = _fitting(signed, signatures, (key for key in keys if not key.valid_at(now)))
    if other is not None:
        raise Refused("key_window", f"authentic by key {other.id}, which vouches from {other.window} only")
    raise Refused("signature", f"none of {len(signatures)} signatures fits one of {len(keys)} keys")


def _fitting(signed: bytes, signatures: Sequence[bytes], keys: Iterable[PublicKey]) -> PublicKey | None:
    for key in keys:
        for signature in signatures:
            try:
                key.key.verify(signed, signature)
            except BadSignatureError:
                continue
            return key
    return None
