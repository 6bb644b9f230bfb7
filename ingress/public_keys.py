"""One public key of the gateway: its text, and for which time and which events it vouches."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from nacl.bindings import crypto_core_ed25519_is_valid_point
from nacl.signing import VerifyKey

from ingress import strict_base64
from tallyhook.errors import SettingsError

KEY_BYTES = 32
MAX_KEYS = 64
ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
ID_MEANING = "1 to 64 letters, digits, '.', '_' or '-'"
_PREFIX = "whpk_"


class KeyringError(SettingsError):
    """A text is no keyring; the message names the place and never repeats a key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key that may vouch for a request.

    Args:
        id: the given id, or the first 16 hex digits of the SHA-256 of the key.
        key: Ed25519 (RFC 8032).
        not_before: the first moment at which it vouches; None: always.
        not_after: the last moment at which it vouches; None: for ever.
        test_only: it vouches for `livemode: false` alone.
    """

    id: str
    key: VerifyKey
    not_before: datetime | None = None
    not_after: datetime | None = None
    test_only: bool = False

    def valid_at(self, now: datetime) -> bool:
        """Whether it vouches at this moment; both ends belong to the window."""
        begun = self.not_before is None or self.not_before <= now
        return begun and (self.not_after is None or now <= self.not_after)

    @property
    def window(self) -> str:
        """The time for which it vouches, for a log."""
        begin = self.not_before.isoformat() if self.not_before is not None else "always"
        return f"{begin} to {self.not_after.isoformat() if self.not_after is not None else 'for ever'}"


def fingerprint(public: bytes) -> str:
    """A key's id where none was given."""
    return hashlib.sha256(public).hexdigest()[:16]


def parse_public(text: str, place: str) -> VerifyKey:
    """Reads `whpk_<base64 of 32 bytes>`; raises KeyringError that names `place`."""
    if not text.startswith(_PREFIX):
        raise KeyringError(f"{place}: a key starts with {_PREFIX}")
    public = strict_base64.decode(text.removeprefix(_PREFIX).encode("utf-8", "replace"))
    if public is None or len(public) != KEY_BYTES:
        raise KeyringError(f"{place}: after {_PREFIX} comes the base64 of exactly {KEY_BYTES} bytes")
    if not crypto_core_ed25519_is_valid_point(public):
        raise KeyringError(f"{place}: not a point of the curve's main group; a forger could sign for it")
    return VerifyKey(public)


def parse_key(entry: str, place: str) -> PublicKey:
    """Reads `[id=]whpk_<base64 of 32 bytes>`; raises KeyringError that names `place`."""
    # Base64 ends in '=', so only what stands before the prefix can be an id.
    head, found, encoded = entry.partition(_PREFIX)
    if not found:
        raise KeyringError(f"{place}: a key starts with {_PREFIX}")
    if head and (not head.endswith("=") or not ID.fullmatch(head[:-1])):
        raise KeyringError(f"{place}: an id is {ID_MEANING}, then '='")
    key = parse_public(found + encoded, place)
    return PublicKey(head[:-1] or fingerprint(bytes(key)), key)


def unique(placed: Sequence[tuple[str, PublicKey]]) -> tuple[PublicKey, ...]:
    """The keys of (place, key) pairs; the very same one may stand in two places.

    Raises KeyringError for a key or an id that two different entries give, and for too many.
    """
    if len(placed) > MAX_KEYS:
        raise KeyringError(f"{len(placed)} keys are given: at most {MAX_KEYS} are tried for each signature")
    keys: dict[bytes, PublicKey] = {}
    ids: set[str] = set()
    for place, key in placed:
        known = keys.get(bytes(key.key))
        if known == key:
            continue
        if known is not None or key.id in ids:
            raise KeyringError(f"{place}: the key or its id {key.id} is given twice")
        keys[bytes(key.key)] = key
        ids.add(key.id)
    return tuple(keys.values())
