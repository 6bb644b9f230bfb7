"""The keys of one endpoint, and how they are read again without a restart."""

from datetime import datetime
from pathlib import Path

from ingress import key_file
from ingress.public_keys import KeyringError, PublicKey, parse_key, unique

LISTED = "TALLYHOOK_INGRESS_PUBLIC_KEYS"
FILE = "TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE"


class Keyring:
    """The keys of one endpoint: those of a setting and those of a file, which is read again when it changes.

    The content is compared, not the file's time: a secret volume swaps a link to another folder, and both may
    bear the same times. A file that cannot be used leaves the keys as they were.

    Args:
        listed: keys with commas between them (TALLYHOOK_INGRESS_PUBLIC_KEYS).
        path: file of keys.
        place: what names the file, for messages.

    Raises:
        KeyringError: no key at all, or one that cannot be used.
    """

    def __init__(self, listed: str | None, path: Path | None, place: str = FILE) -> None:
        entries = [
            (f"{LISTED}, key {number}", entry.strip())
            for number, entry in enumerate((listed or "").split(","), start=1)
            if entry.strip()
        ]
        self._listed = [(named, parse_key(entry, named)) for named, entry in entries]
        self._path, self._place = path, place
        self._tried: bytes | None = None
        if path is not None:
            self._tried = key_file.read(path, place)
            self._keys = self._parse(self._tried, path)
        elif self._listed:
            self._keys = unique(self._listed)
        else:
            raise KeyringError(
                f"no public key is set: give {LISTED}, {FILE} or TALLYHOOK_INGRESS_ENDPOINTS_FILE "
                "(`tallyhook keys generate` makes a pair for tests)"
            )

    @property
    def keys(self) -> tuple[PublicKey, ...]:
        """All keys, also those whose window has not begun or is over."""
        return self._keys

    def valid_at(self, now: datetime) -> tuple[PublicKey, ...]:
        """The keys that vouch at this moment."""
        return tuple(key for key in self._keys if key.valid_at(now))

    def vouches_until(self, now: datetime) -> datetime | None:
        """The moment from which no key vouches any more; None: there is none. `now` itself where none vouches.

        Keys for tests alone do not count beside others: they never vouch for what moves money.
        """
        counted = [key for key in self._keys if not key.test_only] or self._keys
        end = now
        while True:
            # Both ends of a window belong to it, so a key that begins where another ends leaves no hole.
            ends = [key.not_after for key in counted if key.valid_at(end)]
            if None in ends:
                return None
            latest = max((moment for moment in ends if moment is not None), default=end)
            if latest <= end:
                return end
            end = latest

    def reload(self) -> bool:
        """Reads the file again; true when the keys changed. Raises KeyringError once for each unusable content."""
        if self._path is None:
            return False
        try:
            content = key_file.read(self._path, self._place)
        except KeyringError:
            self._tried = None
            raise
        if content == self._tried:
            return False
        self._tried = content
        keys = self._parse(content, self._path)
        changed, self._keys = keys != self._keys, keys
        return changed

    def _parse(self, content: bytes, path: Path) -> tuple[PublicKey, ...]:
        return unique(self._listed + key_file.parse(content, path))
