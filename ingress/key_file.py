"""A file of public keys: one a line, or a TOML file whose tables also say when and for what a key vouches."""

import re
from pathlib import Path

from ingress.public_keys import ID, ID_MEANING, MAX_KEYS, KeyringError, PublicKey, fingerprint, parse_key, parse_public
from ingress.toml_tables import Table, TableError, tables_of

MAX_FILE_BYTES = 65_536
_ANY = re.compile(r".*", re.DOTALL)


def read(path: Path, place: str) -> bytes:
    """The file's content, one byte more than allowed at most; raises KeyringError that begins with `place`."""
    try:
        with path.open("rb") as source:
            return source.read(MAX_FILE_BYTES + 1)
    except OSError as failure:
        raise KeyringError(f"{place}={path}: {failure.strerror}") from None


def parse(content: bytes, path: Path) -> list[tuple[str, PublicKey]]:
    """The keys with their places.

    A file called `.toml`, or one that begins with a table, holds `[[key]] id, public, not_before, not_after,
    test_only`; any other one holds `[id=]whpk_...`, one a line, where `#` starts a comment line.

    Raises:
        KeyringError: it holds no key, or one that cannot be used.
    """
    if len(content) > MAX_FILE_BYTES:
        raise KeyringError(f"{path}: larger than {MAX_FILE_BYTES} bytes")
    if path.suffix == ".toml" or _begins_with_a_table(content):
        return _parse_tables(content, path)
    return _parse_lines(content, path)


def _begins_with_a_table(content: bytes) -> bool:
    lines = (line.strip() for line in content.splitlines())
    return next((line for line in lines if line and not line.startswith(b"#")), b"").startswith(b"[")


def _parse_lines(content: bytes, path: Path) -> list[tuple[str, PublicKey]]:
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise KeyringError(f"{path}: not UTF-8 text") from None
    found = []
    for number, line in enumerate(lines, start=1):
        entry = line.strip()
        if entry and not entry.startswith("#"):
            place = f"{path}, line {number}"
            found.append((place, parse_key(entry, place)))
    if not found:
        raise KeyringError(f"{path}: holds no key")
    return found


def _parse_tables(content: bytes, path: Path) -> list[tuple[str, PublicKey]]:
    try:
        tables = tables_of(content, path, "key", max_bytes=MAX_FILE_BYTES, max_tables=MAX_KEYS)
        return [(table.place, _key(table)) for table in tables]
    except TableError as failure:
        raise KeyringError(str(failure)) from None


def _key(table: Table) -> PublicKey:
    key_id = table.text("id", ID, ID_MEANING)
    public = table.text("public", _ANY, "a text")
    not_before, not_after = table.instant("not_before"), table.instant("not_after")
    test_only = table.flag("test_only")
    table.finish()
    if public is None:
        raise table.wrong("public", "is missing: whpk_ and the base64 of the key's 32 bytes")
    if not_before is not None and not_after is not None and not_before >= not_after:
        raise table.wrong("not_after", "must be later than not_before")
    key = parse_public(public, f"{table.place}, public")
    return PublicKey(key_id or fingerprint(bytes(key)), key, not_before, not_after, test_only)
