"""The rows of a schema, read by key in portions, within the caller's transaction."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice

from psycopg.rows import dict_row

from tallyhook.postgres import Connection, Queries

PORTION = 10_000
"""Keys a query: a world of any size is read in bounded steps."""

Row = Mapping[str, object]


class Stored:
    """Reads what stands in one installation's schema.

    Args:
        connection: in a transaction of the caller's, so that all is read from one moment.
        schema: the installation's schema.
    """

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._queries = Queries("tallyhook.gateway", "expected.sql", schema)

    def rows(self, query: str, keys: Iterable[str]) -> list[Row]:
        """The rows of a query of expected.sql for these keys, in no order."""
        found: list[Row] = []
        waiting = iter(keys)
        with self._connection.cursor(row_factory=dict_row) as cursor:
            while portion := list(islice(waiting, PORTION)):
                found += cursor.execute(self._queries[query], {"keys": portion}).fetchall()
        return found

    def by_key(self, query: str, keys: Iterable[str], column: str) -> dict[str, Row]:
        """The same, each row under its key."""
        return {str(row[column]): row for row in self.rows(query, keys)}

    def by_owner(self, query: str, keys: Iterable[str], column: str) -> dict[str, list[Row]]:
        """The same, several rows a key; a key without rows has an empty list."""
        grouped: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows(query, keys):
            grouped[str(row[column])].append(row)
        return grouped
