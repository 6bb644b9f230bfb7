"""Whether two rows say the same: column by column, a handler's own moments as present or absent."""

import json
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import Any

import msgspec

from sinks.domain.instants import instant
from tallyhook.operations.cutover.columns import Column, Kind
from tallyhook.operations.cutover.reading import Row

load_json = partial(json.loads, parse_float=Decimal)
"""Numbers stay what they are."""

Unlike = tuple[str, Any, Any]
"""A column, its value here and its value there."""


def differing(kind: Kind, here: Mapping[str, Any], there: Row) -> list[Unlike]:
    """The columns in which a row there differs from the one here.

    Args:
        here: the row as `to_jsonb` gives it.
        there: as it was read; only the columns that it has are compared.
    """
    found = []
    for column in kind.columns:
        if not column.own or column.name not in there:
            continue
        mine, theirs = _comparable(column, here.get(column.name)), _comparable(column, there[column.name])
        if mine != theirs:
            found.append((column.name, mine, theirs))
    return found


def _comparable(column: Column, value: Any) -> Any:
    if isinstance(value, msgspec.Raw):
        return load_json(bytes(value))
    if value is None or (column.zero_is_none and value == 0):
        return "not set" if column.mark else None
    if column.mark:
        return "set"
    if column.type == "instant" and isinstance(value, str):
        return instant(value) or value
    return value
