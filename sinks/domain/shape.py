"""What the typed decoder says of a field of the wrong type, in our words."""

import msgspec

_ROOT = "$"
_AT = " - at `"


def shape_detail(failure: msgspec.ValidationError, root: str = "") -> str:
    """The path and the complaint, such as ``data.object.version: Expected `int`, got `str```.

    Args:
        failure: its text ends with msgspec's path where the field is not the value itself.
        root: the path of what was decoded; empty for the whole event.
    """
    complaint, _, at = str(failure).partition(_AT)
    path = (root + at.rstrip("`").removeprefix(_ROOT)).removeprefix(".")
    return f"{path or 'the event'}: {complaint}"
