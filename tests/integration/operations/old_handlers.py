"""Old handlers to switch from: the reference handler on a schema of its own, seen through the tables of the pages."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, LiteralString, Self

from psycopg import sql

from sinks.migrations import upgrade
from tallyhook.operations.cutover.importing import Counted, Different, Import, Unfinished
from tallyhook.operations.cutover.mapping import Mapped
from tallyhook.operations.cutover.old_database import old_database
from tallyhook.operations.cutover.staging import Tell
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.reference.handler import Delivery, Handler

RECEIVED_AT = datetime(2026, 3, 1, tzinfo=UTC)

CREDITED: LiteralString = """
  SELECT d.*, (SELECT e.amount_minor FROM {handler}.pg_user_balance_entries e
                WHERE e.entry_key = 'deposit:' || d.pg_deposit_id || ':credit') AS credited_to_user_minor
    FROM {handler}.pg_deposits d
"""
"""Deposits with what was credited of each, which a later snapshot may tell otherwise."""

EVERY_COLUMN: Mapping[str, LiteralString] = {
    "pg_deposits": CREDITED,
    "pg_deposit_correlations": "SELECT * FROM {handler}.pg_deposit_correlations",
    "pg_deposit_overpayment_flags": "SELECT * FROM {handler}.pg_deposit_overpayment_flags",
    "pg_withdrawals": "SELECT * FROM {handler}.pg_withdrawals",
    "pg_withdrawal_fills": "SELECT * FROM {handler}.pg_withdrawal_fills",
    "pg_withdrawal_fill_reversals": "SELECT * FROM {handler}.pg_withdrawal_fill_reversals",
    "pg_balance_txns": "SELECT * FROM {handler}.pg_balance_txns",
    "users": "SELECT user_id AS id, balance_minor FROM {handler}.pg_user_balances",
}
PARTIAL_FILLS_PAGE: Mapping[str, LiteralString] = {
    **EVERY_COLUMN,
    "pg_withdrawals": """
      SELECT pg_withdrawal_id, pg_version, status, amount_total_minor, COALESCE(fee_total_minor, 0) AS fee_total_minor,
             COALESCE(total_locked_minor, 0) AS total_locked_minor, filled_minor, remaining_minor,
             COALESCE(refunded_minor, 0) AS refunded_minor, COALESCE(fee_recognized_minor, 0) AS fee_recognized_minor,
             COALESCE(settled_splits, 0::smallint) AS settled_splits, max_splits, COALESCE(our_ref, '') AS our_ref,
             closed_at, replacement_withdrawal_id, refund_enqueued_at, user_lock_released_at, updated_at
        FROM {handler}.pg_withdrawals""",
    "pg_withdrawal_fills": """
      SELECT leg_ref, pg_withdrawal_id, sequence, amount_minor, fee_recognized_minor, settled_at,
             balance_transaction_id, auto_confirm_at, reversed_at FROM {handler}.pg_withdrawal_fills""",
    "pg_withdrawal_fill_reversals": """
      SELECT leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id, reversal_balance_transaction_id,
             reversed_at, replacement_withdrawal_id, amount_minor, effect_enqueued_at
        FROM {handler}.pg_withdrawal_fill_reversals""",
    "pg_balance_txns": """
      SELECT btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at
        FROM {handler}.pg_balance_txns""",
}
"""Just the columns of the page on partial fills, with its zeros where nothing is known; a reversal's row has no amount
there, but one that comes before its fill needs it, so that it is left in."""


@dataclass
class OldHandler:
    """A hand-written handler that works on its own tables, and the schema in which an import sees them."""

    handler: Handler
    connection: Connection
    schema: str
    offsets: Iterator[int]

    def deliver(self, body: bytes, partition: int = 0) -> str:
        """One webhook; gives the verdict."""
        event = json.loads(body)
        place = next(self.offsets)
        delivery = Delivery(event["id"], event["data"]["object"]["id"], partition, partition, place, RECEIVED_AT)
        return self.handler.deliver(body, delivery)

    def deliver_all(self, bodies: Iterable[bytes]) -> None:
        """Webhooks one after the other."""
        for body in bodies:
            self.deliver(body)

    def correlate(self, *deposits: str) -> None:
        """Order `ord-<id>`, user `usr-<id>`."""
        for key in deposits:
            self.handler.correlate(key, f"ref-{key}", f"ord-{key}", f"usr-{key}")

    def rows(self, statement: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        """The rows of a statement on its tables."""
        return self.connection.execute(statement, parameters or None).fetchall()


@contextmanager
def old_handler(
    database: DatabaseSettings, name: str, views: Mapping[str, LiteralString] = EVERY_COLUMN
) -> Iterator[OldHandler]:
    """Its tables in the schema `name`, what an import sees of them in `name_seen`; both are dropped afterwards."""
    own = Installation(topic_prefix=name, schema_=name)
    seen = f"{name}_seen"
    upgrade(database, own)
    with connect(database, "test") as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(seen)))
        for view, statement in views.items():
            made = sql.SQL("CREATE VIEW {} AS ").format(sql.Identifier(seen, view))
            connection.execute(made + sql.SQL(statement).format(handler=sql.Identifier(name)))
        try:
            yield OldHandler(Handler(connection, name), connection, seen, iter(range(1_000_000)))
        finally:
            connection.execute("SET lock_timeout = '5s'")
            for schema in (seen, name):
                connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


@dataclass
class Taken:
    """What an import told."""

    new: dict[str, int] = field(default_factory=dict)
    same: dict[str, int] = field(default_factory=dict)
    different: list[Different] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)

    @classmethod
    def of(cls, outcomes: Iterable[Counted | Different | Unfinished]) -> Self:
        """The sums of it."""
        taken = cls()
        for outcome in outcomes:
            if isinstance(outcome, Different):
                taken.different.append(outcome)
            elif isinstance(outcome, Unfinished):
                taken.unfinished.append(outcome)
            else:
                for counts, count in ((taken.new, outcome.new), (taken.same, outcome.same)):
                    counts[outcome.kind] = counts.get(outcome.kind, 0) + count
        return taken


def take_over(
    database: DatabaseSettings,
    installation: Installation,
    schema: str,
    *,
    mapped: Mapped | None = None,
    dry_run: bool = False,
    tell: Tell | None = None,
) -> Taken:
    """What `tallyhook import all` does; `tell` is called after each transaction."""
    assert database.url is not None
    with connect(database, "import") as connection:
        work = Import(connection, installation, "old-handler", "mer_1")
        with old_database(database.url.get_secret_value(), schema, mapped or {}) as old:
            work.staging.add_all(old, _quiet)
        work.staging.check()
        return Taken.of(work.run(tell or _quiet, dry_run=dry_run))


def effects(connection: Connection, schema: str, but: Sequence[str] = ("balance_entry",)) -> list[str]:
    """Dedupe keys of the effects that left, in order."""
    rows = connection.execute(
        sql.SQL("SELECT dedupe_key FROM {} WHERE topic <> ALL(%s) ORDER BY dedupe_key").format(
            sql.Identifier(schema, "pg_outbox")
        ),
        (list(but),),
    )
    return [key for (key,) in rows]


def _quiet(_step: str, _rows: int, _total: int | None) -> None:
    """Progress is for people."""
