"""Where an old handler keeps what: the names of its tables and columns, from a TOML file where they are others."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tallyhook.errors import UsageError
from tallyhook.operations.cutover.columns import BY_PLURAL


@dataclass(frozen=True, slots=True)
class TableMap:
    """One kind's table there.

    Args:
        table: None for the usual name.
        skip: whether the kind is left out.
        columns: our column to theirs.
    """

    table: str | None = None
    skip: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)


Mapped = Mapping[str, TableMap]
"""By the kind's plural; a kind that is absent has the usual names."""


def read_map(path: Path) -> Mapped:
    """The file's tables `[deposits]`, `[withdrawals]` and so on; raises UsageError."""
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise UsageError(f"--map {path} cannot be read: {failure}") from None
    return {plural: _table(path, plural, members) for plural, members in told.items()}


def _table(path: Path, plural: str, members: object) -> TableMap:
    kind = BY_PLURAL.get(plural)
    if kind is None or not isinstance(members, dict):
        raise UsageError(f"--map {path}: [{plural}] is none of {', '.join(BY_PLURAL)}")
    known = {column.name for column in kind.columns}
    columns = {}
    table, skip = members.pop("table", None), members.pop("skip", False)
    for name, theirs in members.items():
        if name not in known or not isinstance(theirs, str) or not theirs:
            raise UsageError(f"--map {path}: [{plural}] {name} must be the name of a column for {', '.join(known)}")
        columns[name] = theirs
    if not (table is None or (isinstance(table, str) and table)) or not isinstance(skip, bool):
        raise UsageError(f"--map {path}: [{plural}] table is a name, skip is true or false")
    return TableMap(table, skip, columns)
