"""How values of an event are shown in a detail: bounded, whatever the event carries."""

PATH_CHARS_MAX = 200
VALUE_CHARS_MAX = 80


def shown(value: object) -> str:
    """A value for a detail, cut where it grows long."""
    text = repr(value)
    return text if len(text) <= VALUE_CHARS_MAX else text[:VALUE_CHARS_MAX] + "…"
