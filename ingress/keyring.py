"""The gateway's public keys, and how they are read again without a restart."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from nacl.bindings import crypto_core_ed25519_is_valid_point
from nacl.signing import VerifyKey

from ingress import strict_base64
from tallyhook.errors import SettingsError

KEY_BYTES = 32
MAX_FILE_BYTES = 65_536
MAX_KEYS = 64
_PREFIX = "whpk_"
_ID = re.compile(r"^[A-Za-z0-9._-]{1,64}$")


class KeyringError(SettingsError):
    """A text is no keyring; the message names the line and never repeats a key."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key that may vouch for a request.

    Args:
        id: the given id, or the first 16 hex digits of the SHA-256 of the key.
        key: Ed25519 (RFC 8032).
    """

    id: str
    key: VerifyKey


def fingerprint(public: bytes) -> str:
    """A key's id where none was given."""
    return hashlib.sha256(public).hexdigest()[:16]


def parse_key(entry: str, place: str) -> PublicKey:
    """Reads `[id=]whpk_<base64 of 32 bytes>`; raises KeyringError that names `place`."""
    # Base64 ends in '=', so only what stands before the prefix can be an id.
    head, found, encoded = entry.partition(_PREFIX)
    if not found:
        raise KeyringError(f"{place}: a key starts with {_PREFIX}")
    if head and (not head.endswith("=") or not _ID.match(head[:-1])):
        raise KeyringError(f"{place}: an id is 1 to 64 letters, digits, '.', '_' or '-', then '='")
    public = strict_base64.decode(encoded.encode("utf-8", "replace"))
    if public is None or len(public) != KEY_BYTES:
        raise KeyringError(f"{place}: after {_PREFIX} comes the base64 of exactly {KEY_BYTES} bytes")
    if not crypto_core_ed25519_is_valid_point(public):
        raise KeyringError(f"{place}: not a point of the curve's main group; a forger could sign for it")
    return PublicKey(head[:-1] or fingerprint(public), VerifyKey(public))


def parse(entries: Sequence[tuple[str, str]]) -> tuple[PublicKey, ...]:
    """Reads (place, entry) pairs; raises KeyringError for a bad one, a repeated one or too many."""
    if len(entries) > MAX_KEYS:
        raise KeyringError(f"{len(entries)} keys are given: at most {MAX_KEYS} are tried for each signature")
    keys: dict[bytes, PublicKey] = {}
    ids: set[str] = set()
    for place, entry in entries:
        key = parse_key(entry, place)
        known = keys.get(bytes(key.key))
        if known is not None and known.id == key.id:
            continue
        if known is not None or key.id in ids:
            raise KeyringError(f"{place}: the key or its id {key.id} is given twice")
        keys[bytes(key.key)] = key
        ids.add(key.id)
    return tuple(keys.values())


def file_entries(content: bytes, path: Path) -> list[tuple[str, str]]:
    """The entries of a keyring file, one a line; `#` starts a comment line. Raises KeyringError."""
    if len(content) > MAX_FILE_BYTES:
        raise KeyringError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise KeyringError(f"{path}: not UTF-8 text") from None
    entries = [
        (f"{path}, line {number}", line.strip())
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.strip().startswith("#")
    ]
    if not entries:
        raise KeyringError(f"{path}: holds no key")
    return entries


class Keyring:
    """The keys of one endpoint: those of a setting and those of a file, which is read again when it changes.

    The content is compared, not the file's time: a secret volume swaps a link to another folder, and both may
    bear the same times. A file that cannot be used leaves the keys as they were.

    Args:
        listed: keys with commas between them (TALLYHOOK_INGRESS_PUBLIC_KEYS).
        path: file of keys (TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE).

    Raises:
        KeyringError: no key at all, or one that cannot be used.
    """

    def __init__(self, listed: str | None, path: Path | None) -> None:
        self._listed = [
            (f"TALLYHOOK_INGRESS_PUBLIC_KEYS, key {number}", entry.strip())
            for number, entry in enumerate((listed or "").split(","), start=1)
            if entry.strip()
        ]
        self._path = path
        self._content = b""
        self._tried: bytes | None = None
        if path is not None:
            self._content = self._tried = self._read(path)
        elif not self._listed:
            raise KeyringError(
                "no public key is set: give TALLYHOOK_INGRESS_PUBLIC_KEYS or TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE "
                "(`tallyhook keys generate` makes a pair for tests)"
            )
        self._keys = self._parse(self._content)

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """The active keys, in the order in which they are tried."""
        return self._keys

    def reload(self) -> bool:
        """Reads the file again; true when the keys changed. Raises KeyringError once for each unusable content."""
        if self._path is None:
            return False
        content = self._read(self._path)
        if content == self._tried:
            return False
        self._tried = content
        keys = self._parse(content)
        changed = [key.id for key in keys] != [key.id for key in self._keys] or keys != self._keys
        self._content, self._keys = content, keys
        return changed

    def _parse(self, content: bytes) -> tuple[PublicKey, ...]:
        return parse(self._listed + (file_entries(content, self._path) if self._path is not None else []))

    def _read(self, path: Path) -> bytes:
        try:
            with path.open("rb") as source:
                return source.read(MAX_FILE_BYTES + 1)
        except OSError as failure:
            self._tried = None
            raise KeyringError(f"TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE={path}: {failure.strerror}") from None
