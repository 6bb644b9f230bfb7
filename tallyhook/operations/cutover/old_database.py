"""The old handler's database, read only: its tables found, their rows in order of their keys, in one snapshot."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import sql
from pydantic import SecretStr

from tallyhook.errors import UsageError
from tallyhook.operations.cutover.columns import CORRELATIONS, DEPOSITS, KINDS, Kind
from tallyhook.operations.cutover.mapping import Mapped, TableMap
from tallyhook.operations.cutover.reading import Text
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings
from tallyhook.settings.database_address import WANTED, readable

ROWS_A_FETCH = 1000


@dataclass(frozen=True, slots=True)
class Table:
    """One kind's table there.

    Args:
        columns: our column to theirs, for the columns that it has.
        tells_changes: whether it has the column by which the kind tells when a row last changed.
    """

    kind: Kind
    name: sql.Identifier
    columns: dict[str, str]
    tells_changes: bool


@dataclass(frozen=True, slots=True)
class _Select:
    names: list[str]
    statement: sql.Composed


class OldDatabase:
    """A connection to the old handler's schema.

    Args:
        connection: autocommit, used by nobody else.
        schema: where its tables are; a table of the map may name another, as `schema.table`.

    Raises:
        UsageError: a table or a column that is needed is not there.
    """

    def __init__(self, connection: Connection, schema: str, mapped: Mapped) -> None:
        self._connection, self._schema = connection, schema
        found = [self._find(kind, mapped.get(kind.plural, TableMap())) for kind in KINDS]
        self.tables = {table.kind.name: table for table in found if table is not None}
        if not self.tables:
            raise UsageError(f"schema {schema!r} has none of the tables {', '.join(kind.table for kind in KINDS)}")
        self._selects = {table.kind.name: self._select(table) for table in self.tables.values()}

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Everything read inside is of one moment."""
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def count(self, kind: Kind) -> int:
        """How many rows the kind has."""
        statement = sql.SQL("SELECT count(*) FROM {}").format(self.tables[kind.name].name)
        row = self._connection.execute(statement).fetchone()
        return int(row[0]) if row else 0

    def rows(self, kind: Kind) -> Iterator[tuple[str, Text]]:
        """Each row's key and text values, in order of the key's bytes; inside of a snapshot."""
        wanted, key = self._selects[kind.name], self.tables[kind.name].columns[kind.key]
        ordered = wanted.statement + sql.SQL(' ORDER BY t.{}::text COLLATE "C"').format(sql.Identifier(key))
        with self._connection.cursor(name=f"old_{kind.plural}") as cursor:
            cursor.itersize = ROWS_A_FETCH
            for row in cursor.execute(ordered):
                yield str(row[0]), dict(zip(wanted.names, row, strict=True))

    def some(self, kind: Kind, keys: Sequence[str]) -> Iterator[tuple[str, Text]]:
        """The rows of some keys, at most as many as the keys."""
        wanted, table = self._selects[kind.name], self.tables[kind.name]
        chosen = sql.SQL(" WHERE t.{}::text = ANY(%s)").format(sql.Identifier(table.columns[kind.key]))
        for row in self._connection.execute(wanted.statement + chosen, (list(keys),)):
            yield str(row[0]), dict(zip(wanted.names, row, strict=True))

    def _find(self, kind: Kind, told: TableMap) -> Table | None:
        if told.skip:
            return None
        names = [told.table] if told.table else [kind.table, *kind.also_tables]
        for name in names:
            schema, _, table = name.rpartition(".")
            place = (schema or self._schema, table)
            there = {
                column
                for (column,) in self._connection.execute(
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s",
                    place,
                )
            }
            if there:
                columns = _columns(kind, told, there, ".".join(place))
                return Table(kind, sql.Identifier(*place), columns, kind.fresh in there)
        if told.table:
            raise UsageError(f"the map's table {told.table} of {kind.plural} is not there")
        return None

    def _select(self, table: Table) -> _Select:
        names, values = [], []
        for column in table.kind.columns:
            if column.name in table.columns:
                # A jsonb column keeps its text; of everything else to_jsonb gives the one form that does not hang
                # on the session's settings.
                pattern = "t.{}::text" if column.type == "json" else "to_jsonb(t.{}) #>> '{{}}'"
                names.append(column.name)
                values.append(sql.SQL(pattern).format(sql.Identifier(table.columns[column.name])))
        if table.tells_changes and table.kind.fresh is not None:
            names.append(table.kind.fresh)
            values.append(sql.SQL("to_jsonb(t.{}) #>> '{{}}'").format(sql.Identifier(table.kind.fresh)))
        tables = sql.SQL(" FROM {} AS t").format(table.name)
        if table.kind is DEPOSITS and "merchant_reference" not in table.columns:
            tables += self._add_reference(table, names, values)
        if table.kind.name == "balance" and "explained_minor" not in table.columns:
            tables += self._add_explained(table, names, values)
        return _Select(names, sql.SQL("SELECT ") + sql.SQL(", ").join(values) + tables)

    def _add_reference(self, table: Table, names: list[str], values: list[sql.Composed]) -> sql.Composed:
        """A deposit comes with the merchant_reference of its correlation."""
        other = self.tables.get(CORRELATIONS.name)
        if other is None:
            return sql.SQL("").format()
        names.append("merchant_reference")
        values.append(sql.SQL("c.{}::text").format(sql.Identifier(other.columns["merchant_reference"])))
        return sql.SQL(" LEFT JOIN {} AS c ON c.{} = t.{}").format(
            other.name, sql.Identifier(other.columns[CORRELATIONS.key]), sql.Identifier(table.columns[DEPOSITS.key])
        )

    def _add_explained(self, table: Table, names: list[str], values: list[sql.Composed]) -> sql.Composed:
        """A balance comes with the part of it that the credits of deposits, less those taken back, explain."""
        deposits = self.tables.get(DEPOSITS.name)
        if deposits is None:
            return sql.SQL("").format()
        theirs = {name: sql.Identifier(column) for name, column in deposits.columns.items()}
        names.append("explained_minor")
        values.append(sql.SQL("coalesce(d.explained, 0)::text").format())
        return sql.SQL(
            " LEFT JOIN (SELECT {user}::text AS user_id, sum({amount}) AS explained FROM {deposits}"
            " WHERE {credited} IS NOT NULL AND {reversed} IS NULL GROUP BY 1) AS d ON d.user_id = t.{key}::text"
        ).format(
            user=theirs["our_user_id"],
            amount=theirs.get("credited_to_user_minor", theirs["amount_received_minor"]),
            deposits=deposits.name,
            credited=theirs["credited_user_at"],
            reversed=theirs["reversed_at"],
            key=sql.Identifier(table.columns[table.kind.key]),
        )


@contextmanager
def old_database(address: str, schema: str, mapped: Mapped) -> Iterator[OldDatabase]:
    """Connects; the password may come from PGPASSWORD or the password file, as with every libpq program.

    Raises:
        UsageError: the address cannot be read, or what is needed is not there.
        DatabaseUnavailable: it does not answer.
    """
    if not readable(address):
        raise UsageError(f"--from-database {WANTED.partition(', or give it apart')[0]}")
    with connect(DatabaseSettings(url=SecretStr(address), password=None), "old-handler") as connection:
        yield OldDatabase(connection, schema, mapped)


def _columns(kind: Kind, told: TableMap, there: set[str], place: str) -> dict[str, str]:
    columns = {}
    for column in kind.columns:
        if column.name in told.columns and told.columns[column.name] not in there:
            raise UsageError(f"the map's column {told.columns[column.name]} is not in {place}")
        chosen = told.columns.get(column.name)
        for name in (chosen,) if chosen else (column.name, *column.also):
            if name in there:
                columns[column.name] = name
                break
        else:
            if column.required or column.present:
                raise UsageError(
                    f"{place} has no column {column.name}: name it in --map, under [{kind.plural}], or leave the kind"
                    " out there with skip = true"
                )
    return columns
