"""`tallyhook import all`: a whole database of an old handler, with the names of its pages or others, beside a sink."""

import threading
import uuid
from collections.abc import Iterator

import pytest
from psycopg import sql

from tallyhook.clock import SystemClock
from tallyhook.operations.cutover.columns import DEPOSITS
from tallyhook.operations.cutover.importing import OWNERS_A_CHUNK, Import
from tallyhook.postgres import connect
from tests.commands import Done
from tests.integration.operations.old_handlers import effects, old_handler, take_over
from tests.integration.operations.operated import Operated, deposit_body
from tests.integration.operations.sink_feed import SinkFeed, withdrawal_body
from tests.running import await_true

VERSION_GUARD_PAGE = """
  CREATE TABLE users (id bigint PRIMARY KEY, balance_minor bigint NOT NULL);
  CREATE TABLE pg_deposit_correlations (
    pg_deposit_id text PRIMARY KEY, merchant_reference text NOT NULL UNIQUE, our_order_id text NOT NULL,
    our_user_id text NOT NULL);
  CREATE TABLE pg_deposits (
    pg_deposit_id text PRIMARY KEY, pg_version bigint NOT NULL, status text NOT NULL, is_terminal boolean,
    late_slip_accepted_until timestamptz, ordered_amount_minor bigint, transferred_amount_minor bigint,
    amount_received_minor bigint, fee_total_minor bigint, credited_amount_minor bigint, fee_breakdown jsonb,
    overpayment jsonb, balance_transaction_id text, clearing_available_at timestamptz, our_order_id text NOT NULL,
    our_user_id text NOT NULL, credited_user_at timestamptz, reversed_at timestamptz,
    updated_at timestamptz NOT NULL DEFAULT now());
  CREATE TABLE pg_withdrawals (
    pg_withdrawal_id text PRIMARY KEY, pg_version bigint NOT NULL, status text NOT NULL,
    amount_total_minor bigint NOT NULL, filled_minor bigint NOT NULL DEFAULT 0, remaining_minor bigint NOT NULL,
    fee_total_minor bigint, fee_recognized_minor bigint, refunded_minor bigint, settled_splits smallint,
    our_payout_id text NOT NULL, closed_at timestamptz, updated_at timestamptz NOT NULL DEFAULT now());
  INSERT INTO users VALUES (7, 12500), (8, 300), (9, 0);
  INSERT INTO pg_deposit_correlations VALUES
    ('dep_1', 'ref-1', 'ord-1', '7'), ('dep_2', 'ref-2', 'ord-2', '7'), ('dep_3', 'ref-3', 'ord-3', '8');
  INSERT INTO pg_deposits VALUES
    ('dep_1', 5, 'settled', true, NULL, 10000, 10000, 10000, 150, 9850, '{"vat": 1.10}', 'null', 'btxn_1', NULL,
     'ord-1', '7', '2026-03-01T10:00:00Z', NULL),
    ('dep_2', 9, 'reversed', true, NULL, 500, 700, 500, 0, 500, NULL, NULL, NULL, NULL,
     'ord-2', '7', '2026-03-01T10:00:00Z', '2026-03-02T10:00:00Z');
  INSERT INTO pg_withdrawals VALUES
    ('wdr_1', 8, 'settled', 1000, 1000, 0, 27, 27, 0, 3, 'tick-1', '2026-03-01T10:00:00Z'),
    ('wdr_2', 6, 'expired', 1000, 700, 0, 27, 19, 300, 2, 'tick-2', NULL);
"""
"""The tables of the page on event order, as a merchant has them: users with numbers, no table of reversals."""


CHUNK = ("leg_1", 300, "btxn_1")


class SteppingClock(SystemClock):
    """Each look at it is a minute later: what the sink does now and then it does at every look."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def monotonic_seconds(self) -> float:
        """A minute more each time."""
        self._seconds += 60
        return self._seconds


@pytest.fixture
def shop(quiet: Operated) -> Iterator[str]:
    """A schema with a hand-written handler's tables."""
    name = f"shop{uuid.uuid4().hex[:8]}"
    with connect(quiet.settings.database, "test") as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(name)))
        connection.execute(VERSION_GUARD_PAGE)
        yield name
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def import_all(place: Operated, schema: str, *options: str) -> Done:
    """The command as a person types it."""
    assert place.settings.database.url is not None
    url = place.settings.database.url.get_secret_value()
    return place.command("import", "all", "--from-database", url, "--from-schema", schema, *options)


def test_a_shop_of_the_page_on_event_order(quiet: Operated, sink: SinkFeed, shop: str) -> None:
    """Beside a running sink: rows, owners, entries and balances; nothing of it happens again."""
    dry = import_all(quiet, shop, "--dry-run")
    assert "deposits: 2 would be written, 0 there already, 0 different" in dry.stdout
    assert "correlations: 1 would be written, 2 there already, 0 different" in dry.stdout
    assert quiet.rows("SELECT count(*) FROM pg_deposits") == [(0,)]
    done = import_all(quiet, shop)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "correlations: 1 written, 2 there already" in done.stdout
    assert "the old handler has no reversals: none are taken over" in done.stderr
    balances = quiet.rows("SELECT user_id, balance_minor FROM pg_user_balances ORDER BY 1")
    assert balances == [("7", 12_500), ("8", 300), ("9", 0)]
    entries = dict(quiet.rows("SELECT entry_key, amount_minor FROM pg_user_balance_entries"))
    assert entries == {
        "deposit:dep_1:credit": 10_000,
        "deposit:dep_2:credit": 500,
        "deposit:dep_2:debit": -500,
        "import:7:opening": 2_500,
        "import:8:opening": 300,
    }
    assert quiet.rows("SELECT our_ref, refund_enqueued_at IS NOT NULL FROM pg_withdrawals ORDER BY 1") == [
        ("tick-1", False),
        ("tick-2", True),
    ]
    overpayment = quiet.rows("SELECT overpayment, fee_breakdown::text FROM pg_deposits WHERE pg_deposit_id = 'dep_1'")
    assert overpayment == [(None, '{"vat": 1.10}')]
    sink.deposit("dep_1", 5, "settled")
    sink.deposit("dep_2", 9, "reversed")
    sink.apply(withdrawal_body("wdr_2", 9, "expired", filled=700))
    sink.apply(withdrawal_body("wdr_1", 9, "settled", filled=1000))
    assert effects(quiet.connection, quiet.settings.installation.schema_name, ()) == []
    sink.deposit("dep_3", 2, "settled")
    assert effects(quiet.connection, quiet.settings.installation.schema_name) == ["deposit:dep_3:release_goods"]
    again = import_all(quiet, shop)
    assert "deposits: 0 written, 2 there already, 0 different" in again.stdout
    assert quiet.rows("SELECT balance_minor FROM pg_user_balances WHERE user_id = '8'") == [(10_300,)]


def test_events_that_waited_for_a_correlation_find_the_imported_row(quiet: Operated, sink: SinkFeed, shop: str) -> None:
    """The correlation comes with its deposit, in one transaction: what waited is late, and nothing is credited."""
    sink.deposit("dep_1", 5, "settled")
    sink.deposit("dep_2", 4, "settled")
    assert quiet.rows("SELECT DISTINCT parked_reason FROM pg_webhook_inbox") == [("correlation",)]
    assert import_all(quiet, shop).returncode == 0
    sink.look()
    verdicts = quiet.rows("SELECT DISTINCT verdict, reason, parked_reason FROM pg_webhook_inbox")
    assert verdicts == [("late", "older_version", None)]
    assert quiet.rows("SELECT balance_minor FROM pg_user_balances WHERE user_id = '7'") == [(12_500,)]
    assert effects(quiet.connection, quiet.settings.installation.schema_name, ()) == []


def test_other_names_stand_in_a_map(quiet: Operated, shop: str) -> None:
    """Tables and columns; a kind may be left out; what is not there is named."""
    with connect(quiet.settings.database, "test") as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(shop)))
        connection.execute("ALTER TABLE pg_deposits RENAME TO topups")
        connection.execute("ALTER TABLE topups RENAME credited_user_at TO paid_out")
        connection.execute("ALTER TABLE users RENAME balance_minor TO satang")
    file = quiet.folder / "map.toml"
    names = '[deposits]\ntable = "topups"\ncredited_user_at = "{}"\n\n[balances]\ntable = "{}.users"\n'
    file.write_text(names.format("paid_at", shop))
    assert "the map's column paid_at is not in" in import_all(quiet, shop, "--map", str(file)).stderr
    file.write_text(names.format("paid_out", shop))
    lacking = import_all(quiet, shop, "--map", str(file))
    assert lacking.returncode == 2
    assert "has no column balance_minor: name it in --map, under [balances]" in " ".join(lacking.stderr.split())
    file.write_text(names.format("paid_out", shop) + 'balance_minor = "satang"\n\n[withdrawals]\nskip = true\n')
    done = import_all(quiet, shop, "--map", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert quiet.rows("SELECT user_id, balance_minor FROM pg_user_balances WHERE user_id = '7'") == [("7", 12_500)]
    assert quiet.rows("SELECT count(*) FROM pg_withdrawals") == [(0,)]


def test_rows_that_cannot_be_taken_over_keep_all_out(quiet: Operated, shop: str) -> None:
    """The id and the fault, for each; exit code 1 and nothing written."""
    with connect(quiet.settings.database, "test") as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(shop)))
        connection.execute("UPDATE pg_deposits SET credited_amount_minor = 1 WHERE pg_deposit_id = 'dep_1'")
        connection.execute("DELETE FROM pg_deposit_correlations WHERE pg_deposit_id = 'dep_2'")
    done = import_all(quiet, shop)
    assert done.returncode == 1
    assert "dep_1: deposits dep_1: credited 1 must be received 10000 less fee 150" in done.stdout
    assert "dep_2: deposits dep_2: merchant_reference is not given" in done.stdout
    assert "2 faults; nothing was written" in done.stderr
    for table in ("pg_deposits", "pg_withdrawals", "pg_user_balances"):
        assert quiet.rows(f"SELECT count(*) FROM {table}") == [(0,)]


def test_nothing_is_written_beside_a_batch_of_the_sink(quiet: Operated, sink: SinkFeed, shop: str) -> None:
    """A batch that has looked before must end first: it would decide on what was."""
    done: list[Done] = []
    with connect(quiet.settings.database, "sink") as batch:
        batch.execute("BEGIN")
        batch.execute(
            sql.SQL("SELECT FROM {} FOR UPDATE").format(
                sql.Identifier(quiet.settings.installation.schema_name, "sink_offsets")
            )
        )
        command = threading.Thread(target=lambda: done.append(import_all(quiet, shop)))
        command.start()
        waiting = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE application_name = 'tallyhook-import' AND wait_event_type = 'Lock'"
        )
        await_true(lambda: quiet.rows(waiting) == [(1,)], 20, "the import to wait")
        assert quiet.rows("SELECT count(*) FROM pg_deposits") == [(0,)]
        batch.execute("COMMIT")
        command.join(30)
    assert done[0].returncode == 0, done[0].stderr
    assert quiet.rows("SELECT count(*) FROM pg_deposits") == [(2,)]


def test_a_sink_that_looks_after_every_chunk_sees_nothing_in_halves(quiet: Operated, sink: SinkFeed) -> None:
    """Whatever waits goes on between two transactions of the import; no deposit without its row, no order without its
    reversals."""
    sink.claim(SteppingClock())
    deposits = ("dep_1", "dep_2", "dep_3")
    for deposit in deposits:
        sink.deposit(deposit, 3, "settled")
    with old_handler(quiet.settings.database, f"o{uuid.uuid4().hex[:12]}") as old:
        old.correlate(*deposits)
        old.deliver_all(deposit_body(f"evt_{deposit}", deposit, 3, "settled") for deposit in deposits)
        old.deliver(withdrawal_body("wdr_1", 3, "partially_filled", filled=300, remaining=700, fill=CHUNK))
        old.deliver(withdrawal_body("wdr_1", 4, "partially_filled", reversal=(*CHUNK, "btxn_2")))
        sparse = withdrawal_body("wdr_1", 4, "partially_filled", reversal=(*CHUNK, "btxn_2"), sparse=True)
        sink.apply(sparse)
        looks: list[str] = []

        def look(step: str, _rows: int, _total: int | None) -> None:
            if step.startswith("writing"):
                sink.look()
                looks.append(step)

        taken = take_over(quiet.settings.database, quiet.settings.installation, old.schema, tell=look)
        assert taken.different == []
    assert len(looks) >= 4
    assert quiet.rows("SELECT DISTINCT verdict, reason FROM pg_webhook_inbox") == [("late", "older_version")]
    assert effects(quiet.connection, quiet.settings.installation.schema_name, ()) == []


def test_an_interrupted_import_goes_on_where_it_was(quiet: Operated) -> None:
    """Whole chunks are written; the second run finds them and writes the rest, each credit once."""
    many = 2 * OWNERS_A_CHUNK + 7
    rows = [(f"line {number}", _deposit(number)) for number in range(many)]

    def interrupt(step: str, _rows: int, _total: int | None) -> None:
        if step.startswith("writing"):
            raise KeyboardInterrupt

    def quietly(_step: str, _rows: int, _total: int | None) -> None:
        """Progress is for people."""

    for tell in (interrupt, quietly):
        with connect(quiet.settings.database, "import") as connection:
            work = Import(connection, quiet.settings.installation, "old", None)
            work.staging.add(DEPOSITS, rows, quietly, many)
            work.staging.check()
            try:
                outcomes = list(work.run(tell, dry_run=False))
            except KeyboardInterrupt:
                assert quiet.rows("SELECT count(*) FROM pg_deposits") == [(OWNERS_A_CHUNK,)]
                continue
            assert sum(getattr(outcome, "same") for outcome in outcomes) == OWNERS_A_CHUNK  # noqa: B009
    assert quiet.rows("SELECT count(*) FROM imported_objects") == [(many,)]
    assert quiet.rows("SELECT balance_minor FROM pg_user_balances") == [(100 * many,)]


def _deposit(number: int) -> dict[str, str | None]:
    return {
        "pg_deposit_id": f"dep_{number}",
        "pg_version": "3",
        "status": "settled",
        "ordered_amount_minor": "100",
        "transferred_amount_minor": "100",
        "amount_received_minor": "100",
        "fee_total_minor": "0",
        "credited_amount_minor": "100",
        "our_order_id": f"ord-{number}",
        "our_user_id": "usr",
        "credited_user_at": "2026-03-01T10:00:00Z",
        "reversed_at": None,
        "merchant_reference": f"ref-{number}",
    }
