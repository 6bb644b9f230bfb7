"""Rows of one kind from a CSV file: UTF-8, commas, a first line with the columns' names; what is empty is NULL."""

import csv
from collections.abc import Iterator, Sequence
from typing import TextIO

from tallyhook.errors import UsageError
from tallyhook.operations.cutover.columns import Kind
from tallyhook.operations.cutover.reading import TEXT_MAX, Text

PASSED_OVER = frozenset({"updated_at", "received_at", "noted_xid"})
"""Columns that a whole table has beside those that are taken over."""


class CsvSource:
    """A file that is read once, line by line.

    Args:
        kind: what each line is.
        file: opened with `newline=""`; a byte order mark at the beginning must be gone.

    Raises:
        UsageError: the first line names a column twice, or one that is not known, or lacks one that is needed.
    """

    def __init__(self, kind: Kind, file: TextIO) -> None:
        csv.field_size_limit(2 * TEXT_MAX)
        self._kind, self._lines = kind, csv.reader(file, strict=True)
        try:
            header = next(self._lines, [])
        except (csv.Error, UnicodeDecodeError) as failure:
            raise UsageError(f"the first line cannot be read: {failure}") from None
        self._names = _names(kind, header)

    def rows(self) -> Iterator[tuple[str, Text | str]]:
        """Each line's place, and its values or what makes it unreadable."""
        while True:
            try:
                fields = next(self._lines)
            except StopIteration:
                return
            except (csv.Error, UnicodeDecodeError) as failure:
                # Where the next line begins is not known any more.
                yield f"line {self._lines.line_num}", f"it is no CSV in UTF-8: {failure}"
                return
            place = f"line {self._lines.line_num}"
            if not fields:
                continue
            if len(fields) != len(self._names):
                yield place, f"it has {len(fields)} fields, the first line has {len(self._names)}"
                continue
            given = zip(self._names, fields, strict=True)
            yield place, {name: field or None for name, field in given if name is not None}


def _names(kind: Kind, header: Sequence[str]) -> list[str | None]:
    """The columns in their order; None for one that is passed over."""
    known = {other: column.name for column in kind.columns for other in (*column.also, column.name)}
    names: list[str | None] = []
    for title in header:
        name = title.strip()
        if name not in known and name not in PASSED_OVER:
            raise UsageError(f"column {name[:60]!r} is not known; {kind.plural} have: {', '.join(known)}")
        names.append(known.get(name))
    given = [name for name in names if name is not None]
    if len(set(given)) < len(given):
        raise UsageError("the first line names a column twice")
    lacking = [
        column.name for column in kind.columns if (column.required or column.present) and column.name not in given
    ]
    if lacking:
        raise UsageError(f"the first line lacks {', '.join(lacking)}")
    return names
