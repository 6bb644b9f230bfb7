"""Text that came from outside, made safe for a terminal: control characters and what reorders text become escapes."""


def escaped(text: str | None, *, lines: bool = False) -> str:
    """The text with each character that does not print as its escape; Thai and other letters stay.

    Args:
        text: None is shown as nothing.
        lines: whether line breaks stay.
    """
    return "".join(_shown(character, lines) for character in text or "")


def escaped_bytes(raw: bytes, *, lines: bool = False) -> str:
    """The same for bytes; what is not UTF-8 is shown as `\\xNN`."""
    return escaped(raw.decode("utf-8", "backslashreplace"), lines=lines)


def _shown(character: str, lines: bool) -> str:
    if character.isprintable() or (lines and character == "\n"):
        return character
    return character.encode("unicode_escape").decode()
