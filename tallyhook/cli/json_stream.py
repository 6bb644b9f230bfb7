"""One JSON document written piece by piece, so that a long list never stands in memory as a whole."""

from typing import Any

import orjson

_OPTIONS = orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z


class JsonStream:
    """Prints an object whose first member is a list; to be used as a context.

    Args:
        name: the list's name.
    """

    def __init__(self, name: str) -> None:
        self._name, self._count = name, 0

    def begin(self) -> None:
        """Opens the object and the list."""
        print(f'{{\n  "{self._name}": [', end="")

    def add(self, item: Any) -> None:
        """One more of the list."""
        print("," if self._count else "", end="\n")
        print(_indented(item, 4), end="", flush=True)
        self._count += 1

    def end(self, members: dict[str, Any]) -> None:
        """Closes the list and writes the other members, then closes the object."""
        print("\n  ]" if self._count else "]", end="")
        for name, value in members.items():
            print(f',\n  "{name}": {_indented(value, 2).lstrip()}', end="")
        print("\n}")


def _indented(value: Any, blanks: int) -> str:
    text = orjson.dumps(value, option=_OPTIONS, default=str).decode()
    return "\n".join(" " * blanks + line for line in text.split("\n"))
