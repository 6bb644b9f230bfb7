"""Base64 with one spelling a value: the standard alphabet, padded, no stray bits (RFC 4648, section 3.5)."""

import base64
import binascii


def decode(text: bytes) -> bytes | None:
    """The bytes that `text` stands for, or None unless encoding them gives exactly `text` again."""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if base64.b64encode(found) == text else None
