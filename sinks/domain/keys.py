"""Texts of an event that become keys of a table."""

KEY_BYTES_MAX = 512
"""Like every id; a key of many kilobytes would not fit into an index of PostgreSQL."""


def key_fault(name: str, key: str) -> str | None:
    """What keeps a text from being a key, told of the member `name`; None when nothing does."""
    # No character takes more than four bytes, so most keys need not be encoded to be measured.
    if len(key) * 4 > KEY_BYTES_MAX and len(key.encode()) > KEY_BYTES_MAX:
        return f"{name} is longer than {KEY_BYTES_MAX} bytes"
    return None
