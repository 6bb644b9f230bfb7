"""How commands show what they found: a table for people, JSON for programs."""

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)
for _target in (console, errors):
    # A line that goes to a file or a pipe stays a line, however long: programs and grep read it.
    _target.soft_wrap = not _target.is_terminal


def print_json(value: Any) -> None:
    """One JSON document on standard output; dates in RFC 3339, UTC with Z."""
    print(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z, default=str).decode())


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A plain table that can be copied out of a terminal; wide ones are not cut when piped."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    target = console if console.is_terminal else Console(width=200, highlight=False)
    target.print(table)
