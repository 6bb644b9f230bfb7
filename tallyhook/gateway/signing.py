"""The gateway's side of a signature: Ed25519 over `{id}.{timestamp}.{body}` (Standard Webhooks, tag `v1a`)."""

import base64
import binascii
import hashlib
import re
from typing import Final

from nacl.signing import SigningKey as Ed25519Key

from tallyhook.errors import UsageError

SECRET_PREFIX: Final = "whsk_"  # noqa: S105  how a secret begins
PUBLIC_PREFIX: Final = "whpk_"
SEED_BYTES = 32
MAX_ID_CHARACTERS = 512

_ID = re.compile(rf"[\x21-\x7e]{{1,{MAX_ID_CHARACTERS}}}")


def webhook_id(text: str) -> str:
    """The text, if the header webhook-id can carry it; raises UsageError that repeats its beginning in ASCII."""
    if _ID.fullmatch(text) is None:
        shown = ascii(text[:40]) + ("..." if len(text) > 40 else "")
        raise UsageError(
            f"{shown} cannot be a webhook-id: give --id with visible ASCII, 1 to {MAX_ID_CHARACTERS} characters"
        )
    return text


class SigningKey:
    """A private key that never shows itself: neither `repr` nor an error's text holds any of it."""

    def __init__(self, seed: bytes) -> None:
        """Takes the 32-byte Ed25519 seed."""
        if len(seed) != SEED_BYTES:
            raise UsageError(f"a signing key has {SEED_BYTES} bytes, this one {len(seed)}")
        self._key = Ed25519Key(seed)

    @classmethod
    def generate(cls) -> "SigningKey":
        """A new key from the system's randomness."""
        return cls(bytes(Ed25519Key.generate()))

    @classmethod
    def from_text(cls, text: str) -> "SigningKey":
        """Reads `whsk_` + base64 of the seed; raises UsageError that does not repeat it."""
        text = text.strip()
        try:
            seed = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            seed = b""
        if not text.startswith(SECRET_PREFIX) or len(seed) != SEED_BYTES:
            raise UsageError(
                f"not a signing key: it is {SECRET_PREFIX} and the base64 of {SEED_BYTES} bytes "
                "(`tallyhook keys generate` makes one)"
            )
        return cls(seed)

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"

    @property
    def key_id(self) -> str:
        """The first 16 hex digits of the SHA-256 of the public key."""
        return hashlib.sha256(bytes(self._key.verify_key)).hexdigest()[:16]

    def public_text(self) -> str:
        """`whpk_` + base64 of the 32-byte public key, as TALLYHOOK_INGRESS_PUBLIC_KEYS takes it."""
        return PUBLIC_PREFIX + base64.b64encode(bytes(self._key.verify_key)).decode()

    def secret_text(self) -> str:
        """`whsk_` + base64 of the seed: for a file that only its owner reads."""
        return SECRET_PREFIX + base64.b64encode(bytes(self._key)).decode()

    def sign(self, message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
        """The three headers of one attempt.

        Args:
            message_id: webhook-id.
            timestamp: when the attempt is made, in seconds since 1970.
            body: the exact bytes that are posted.

        Raises:
            UsageError: a header cannot carry the id.
        """
        signed = b".".join((webhook_id(message_id).encode("ascii"), str(timestamp).encode(), body))
        signature = base64.b64encode(self._key.sign(signed).signature).decode()
        return {
            "webhook-id": message_id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": f"v1a,{signature}",
        }
