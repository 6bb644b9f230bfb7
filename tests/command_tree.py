"""Which commands there are, and which variables their options read."""

from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from tallyhook.cli.main import app


def command_names() -> set[str]:
    """Every command and group, as one types it after `tallyhook`."""
    return {name for name, _ in _walk("", get_command(app))}


def group_names() -> set[str]:
    """Those that take a command of their own."""
    return {name for name, command in _walk("", get_command(app)) if hasattr(command, "commands")}


def option_variables() -> set[str]:
    """The variables that stand for an option of any command."""
    return {option.envvar for _, command in _walk("", get_command(app)) for option in command.params if option.envvar}


def _walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    """All below a command; typer's types of groups and options are not public."""
    for name, below in getattr(command, "commands", {}).items():
        whole = f"{path} {name}".strip()
        yield whole, below
        yield from _walk(whole, below)
