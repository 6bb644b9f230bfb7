"""The options by which `import` and `compare` find the old handler's rows."""

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from tallyhook.cli.escaping import escaped
from tallyhook.errors import UsageError

_AGE = re.compile(r"([0-9]{1,6})([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}

FromDatabaseOption = Annotated[
    str | None,
    typer.Option(
        "--from-database",
        help="libpq URI of the old handler's database; the password also from PGPASSWORD or the password file.",
    ),
]
FromSchemaOption = Annotated[str, typer.Option("--from-schema", help="Schema of the old handler's tables.")]
MapOption = Annotated[Path | None, typer.Option("--map", help="TOML file with other names of its tables and columns.")]


def shown_value(value: Any) -> str:
    """A value for a line; what came from outside is escaped."""
    return "nothing" if value is None else escaped(json.dumps(value, ensure_ascii=False, default=str))


def age(text: str) -> timedelta:
    """A time as `30s`, `5m` or `2h`; raises UsageError."""
    found = _AGE.fullmatch(text)
    if found is None:
        raise UsageError(f"{text[:20]!r} is no time: give 30s, 5m or 2h")
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
