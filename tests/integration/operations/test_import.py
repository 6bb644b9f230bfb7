"""`tallyhook import` from files: each line is checked, nothing is written in halves, nothing is written twice."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from tallyhook.postgres import connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.operations.import_files import DEPOSITS, OPEN, REVERSED, SETTLED, counts, imported
from tests.integration.operations.operated import Operated, operated
from tests.integration.operations.sink_feed import SinkFeed


@pytest.fixture(scope="module")
def untouched(kafka_bootstrap: str, database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """One installation for what must change nothing."""
    name = f"t{uuid.uuid4().hex[:12]}"
    made = operated(
        KafkaSettings(bootstrap=kafka_bootstrap),
        DatabaseSettings(url=SecretStr(database_url)),
        Installation(topic_prefix=name, schema_=name),
        tmp_path_factory.mktemp("untouched"),
        with_topics=False,
    )
    yield made
    made.connection.execute(f'DROP SCHEMA "{name}" CASCADE')
    made.close()


def test_deposits_come_with_correlation_and_entries(quiet: Operated) -> None:
    """The row, to whom it belongs, its credit and debit, and the balance that they make; no effect, no inbox row."""
    told = imported(quiet, "deposits", DEPOSITS + SETTLED + REVERSED + OPEN)
    assert counts(told) == {"deposits": (3, 0, 0)}
    rows = quiet.rows(
        "SELECT pg_deposit_id, pg_version, status, amount_received_minor, fee_breakdown, our_order_id,"
        " credited_user_at::text, reversed_at IS NOT NULL FROM pg_deposits ORDER BY 1"
    )
    assert rows == [
        ("dep_1", 5, "settled", 10_000, {"vat": 10}, "ord-1", "2026-03-01 10:00:00+00", False),
        ("dep_2", 9, "reversed", 500, None, "ord-2", "2026-03-01 03:00:00+00", True),
        ("dep_3", 1, "open", None, None, "ord-3", None, False),
    ]
    assert quiet.rows("SELECT * FROM pg_user_balances") == [("usr-1", 10_000)]
    assert quiet.rows("SELECT entry_key, user_id, amount_minor, event_id FROM pg_user_balance_entries ORDER BY 1") == [
        ("deposit:dep_1:credit", "usr-1", 10_000, "import:old-handler"),
        ("deposit:dep_2:credit", "usr-1", 500, "import:old-handler"),
        ("deposit:dep_2:debit", "usr-1", -500, "import:old-handler"),
    ]
    owners = quiet.rows("SELECT pg_deposit_id, merchant_reference, our_user_id FROM pg_deposit_correlations ORDER BY 1")
    assert owners == [("dep_1", "ref-1", "usr-1"), ("dep_2", "ref-2", "usr-1"), ("dep_3", "ref-3", "usr-2")]
    assert quiet.rows("SELECT (SELECT count(*) FROM pg_outbox), (SELECT count(*) FROM pg_webhook_inbox)") == [(0, 0)]
    noted = quiet.rows("SELECT kind, object_id, owner_id, source, imported->>'pg_version' FROM imported_objects")
    assert ("deposit", "dep_1", "dep_1", "old-handler", "5") in noted


def test_done_twice_it_does_nothing_more(quiet: Operated) -> None:
    """The second run says that everything is there; balances and entries stay."""
    text = DEPOSITS + SETTLED + REVERSED
    balances = "user_id,balance_minor\nusr-1,12345\nusr-9,0\nusr-8,-7\n"
    for new, same in ((2, 0), (0, 2)):
        assert counts(imported(quiet, "deposits", text)) == {"deposits": (new, same, 0)}
    for new, same in ((3, 0), (0, 3)):
        assert counts(imported(quiet, "balances", balances)) == {"balances": (new, same, 0)}
    assert quiet.rows("SELECT * FROM pg_user_balances ORDER BY 1") == [("usr-1", 12_345), ("usr-8", -7), ("usr-9", 0)]
    opened = quiet.rows("SELECT entry_key, amount_minor FROM pg_user_balance_entries WHERE entry_key LIKE 'import:%'")
    assert sorted(opened) == [("import:usr-1:opening", 2_345), ("import:usr-8:opening", -7)]
    unequal = quiet.rows(
        "SELECT user_id FROM pg_user_balances b WHERE balance_minor <> COALESCE((SELECT sum(amount_minor)"
        " FROM pg_user_balance_entries e WHERE e.user_id = b.user_id), 0)"
    )
    assert unequal == []


def test_a_dry_run_changes_nothing(quiet: Operated) -> None:
    """It counts the same and writes nothing at all."""
    told = imported(quiet, "deposits", DEPOSITS + SETTLED + OPEN, "--dry-run")
    assert (counts(told), told["dry_run"]) == ({"deposits": (2, 0, 0)}, True)
    for table in ("pg_deposits", "pg_deposit_correlations", "pg_user_balances", "imported_objects"):
        assert quiet.rows(f"SELECT count(*) FROM {table}") == [(0,)]


BAD_LINES = {
    "dep_4,x,open,,,,,,,,o,u,,,r4,x": "pg_version is 'x', no whole number",
    "dep_4,-1,open,,,,,,,,o,u,,,r4,x": "pg_version is '-1'",
    "dep_4,9223372036854775808,open,,,,,,,,o,u,,,r4,x": "no whole number of 0 to 9223372036854775807",
    ",1,open,,,,,,,,o,u,,,r4,x": "pg_deposit_id is empty",
    "dep_4,1,open,,,,,,,,o,,,,r4,x": "our_user_id is empty",
    "dep_4,1,open,maybe,,,,,,,o,u,,,r4,x": "is_terminal is 'maybe'",
    "dep_4,1,open,,,,,,,{,o,u,,,r4,x": "fee_breakdown is no JSON",
    "dep_4,1,open,,,,,,,,o,u,2026-03-01 10:00:00,,r4,x": "no date-time with its time zone",
    "dep_4,1,settled,,10,10,9,0,9,,o,u,2026-03-01T10:00:00Z,,r4,x": "received 9 must be the lesser",
    "dep_4,1,settled,,10,10,10,1,10,,o,u,2026-03-01T10:00:00Z,,r4,x": "credited 10 must be received 10 less fee 1",
    "dep_4,1,settled,,10,10,,0,10,,o,u,2026-03-01T10:00:00Z,,r4,x": "amount_received_minor must be known",
    "dep_4,1,settled,,10,10,10,0,10,,o,u,,,r4,x": "let the old handler credit it first",
    "dep_4,1,open,,,,,,,,o,u,2026-03-01T10:00:00Z,,r4,x": "give credited_to_user_minor",
    "dep_4,1,reversed,,10,10,10,0,10,,o,u,,2026-03-01T10:00:00Z,r4,x": "never credited cannot be taken back",
    "dep_4,1,open,,,,,,,,o,u,,,,x": "no correlation is known",
    "dep_4,1,open,,,,,,,,o,u,,,ref-1,x": "merchant_reference ref-1 belongs to dep_1",
    "dep_1,1,open,,,,,,,,o,u,,,r4,x": "it is there 2 times",
    "dep_4,1,open": "it has 3 fields",
    'dep_4,1,"open': "it is no CSV",
}


@pytest.mark.parametrize("line", BAD_LINES, ids=[*BAD_LINES.values()])
def test_one_bad_line_keeps_all_out(untouched: Operated, line: str) -> None:
    """Its number, its id and the fault are told, with exit code 1, and nothing is written."""
    told = imported(untouched, "deposits", DEPOSITS + SETTLED + line + "\n", code=1)
    assert any(BAD_LINES[line] in fault["what"] for fault in told["faults"]), told
    assert all(fault["place"] in ("line 2", "line 3", "line 4") for fault in told["faults"])
    assert untouched.rows("SELECT count(*) FROM pg_deposits") == [(0,)]
    assert untouched.rows("SELECT count(*) FROM pg_deposit_correlations") == [(0,)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pg_deposit_id,pg_version\n", "lacks status"),
        (DEPOSITS.replace("credited_user_at,", ""), "lacks credited_user_at"),
        (DEPOSITS.replace("status", "statsu"), "'statsu' is not known"),
        (DEPOSITS.replace("is_terminal", "status"), "names a column twice"),
        ("", "lacks pg_deposit_id"),
        ("\udcff", "cannot be read"),
    ],
)
def test_a_first_line_that_does_not_fit_is_wrong_usage(untouched: Operated, text: str, message: str) -> None:
    """A mistyped or missing column would take a guard away without a word."""
    file = untouched.folder / "d.csv"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    done = untouched.command("import", "deposits", str(file))
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


def test_what_is_different_is_named_and_stays(quiet: Operated) -> None:
    """Both values and the line; neither the row nor the money of it changes. Exit code 1."""
    imported(quiet, "deposits", DEPOSITS + SETTLED)
    other = SETTLED.replace(",5,settled", ",6,settled").replace("10000,150,9850", "10000,250,9750")
    told = imported(quiet, "deposits", DEPOSITS + other + OPEN, code=1)
    assert counts(told) == {"deposits": (1, 0, 1)}
    found = [(row["object_id"], row["place"], row["member"], row["here"], row["there"]) for row in told["remarks"]]
    assert found == [
        ("dep_1", "line 2", "pg_version", 5, 6),
        ("dep_1", "line 2", "fee_total_minor", 150, 250),
        ("dep_1", "line 2", "credited_amount_minor", 9850, 9750),
    ]
    assert quiet.rows("SELECT pg_version, fee_total_minor FROM pg_deposits WHERE pg_deposit_id = 'dep_1'") == [(5, 150)]
    assert quiet.rows("SELECT balance_minor FROM pg_user_balances") == [(10_000,)]


def test_another_owner_than_the_correlation_says_is_a_difference(quiet: Operated) -> None:
    """A deposit is credited to whom its correlation names, so both must say the same."""
    quiet.correlate("dep_1")
    text = DEPOSITS + SETTLED.replace("usr-1", "usr-2")
    told = imported(quiet, "deposits", text, code=1)
    assert {row["member"] for row in told["remarks"]} == {"merchant_reference", "our_order_id", "our_user_id"}
    assert quiet.rows("SELECT count(*) FROM pg_deposits") == [(0,)]


def test_goods_of_an_imported_deposit_never_leave_again(quiet: Operated, sink: SinkFeed) -> None:
    """Its events come again, and newer ones; only the debit of a later reversal leaves, to the imported user."""
    imported(quiet, "deposits", DEPOSITS + SETTLED + REVERSED)
    sink.deposit("dep_1", 5, "settled")
    sink.deposit("dep_1", 4, "open")
    sink.deposit("dep_1", 7, "settled")
    sink.deposit("dep_2", 9, "reversed")
    sink.deposit("dep_2", 11, "settled")
    assert quiet.rows("SELECT topic FROM pg_outbox") == []
    sink.deposit("dep_1", 8, "reversed")
    assert quiet.rows("SELECT topic FROM pg_outbox ORDER BY seq") == [("balance_entry",), ("hold_goods",)]
    assert quiet.rows("SELECT balance_minor FROM pg_user_balances WHERE user_id = 'usr-1'") == [(0,)]
    reasons = quiet.rows("SELECT version, verdict, reason FROM pg_webhook_inbox WHERE object_id = 'dep_1' ORDER BY 1")
    assert reasons == [
        (4, "late", "older_version"),
        (5, "late", "older_version"),
        (7, "advanced", "already_credited"),
        (8, "advanced", None),
    ]


def test_the_debit_repeats_what_the_old_handler_credited(quiet: Operated, sink: SinkFeed) -> None:
    """It may have credited another amount than the newest snapshot tells."""
    header = DEPOSITS.replace("updated_at", "credited_to_user_minor")
    imported(quiet, "deposits", header + SETTLED.replace(",ref-1,x", ",ref-1,9000"))
    assert quiet.rows("SELECT balance_minor FROM pg_user_balances") == [(9_000,)]
    sink.deposit("dep_1", 8, "reversed")
    entries = quiet.rows("SELECT entry_key, amount_minor FROM pg_user_balance_entries ORDER BY 1")
    assert entries == [("deposit:dep_1:credit", 9_000), ("deposit:dep_1:debit", -9_000)]


def test_transactions_are_the_merchants(quiet: Operated) -> None:
    """Where their rows do not tell, the option does; a second look finds them the same."""
    text = (
        "btxn_id,type,direction,amount_minor,bucket_from,bucket_to,source_id,created_at\n"
        "b1,balance.credited,credit,5,,available,dep_1,2026-03-01T10:00:00Z\n"
    )
    for expected in ((1, 0, 0), (0, 1, 0)):
        told = imported(quiet, "transactions", text, "--merchant", "mer_7")
        assert counts(told) == {"transactions": expected}
    assert quiet.rows("SELECT btxn_id, merchant_id, bucket_from FROM pg_balance_txns") == [("b1", "mer_7", None)]


def test_a_balance_that_the_sink_has_moved_needs_its_explanation(quiet: Operated, sink: SinkFeed) -> None:
    """Whether the old balance holds a credit of the sink's cannot be guessed; explained_minor tells."""
    quiet.correlate("dep_1")
    sink.deposit("dep_1", 5, "settled")
    told = imported(quiet, "balances", "user_id,balance_minor\nusr-dep_1,10700\n", code=1)
    assert [row["member"] for row in told["remarks"]] == ["explained_minor"]
    told = imported(quiet, "balances", "user_id,balance_minor,explained_minor\nusr-dep_1,10700,10000\n")
    assert counts(told) == {"balances": (1, 0, 0)}
    assert quiet.rows("SELECT balance_minor FROM pg_user_balances") == [(10_700,)]


def test_two_imports_at_once_are_refused(quiet: Operated) -> None:
    """The second says so and ends with 1."""
    key = quiet.settings.installation.lock_key("import")
    with connect(quiet.settings.database, "test") as other:
        other.execute("SELECT pg_advisory_lock(%s)", (key,))
        file = quiet.folder / "d.csv"
        file.write_text(DEPOSITS)
        done = quiet.command("import", "deposits", str(file))
    assert done.returncode == 1
    assert "another import works" in done.stderr


def test_a_file_from_standard_input_may_begin_with_a_mark(quiet: Operated, tmp_path: Path) -> None:
    """As spreadsheets write it; fields of several lines keep their line's number."""
    file = tmp_path / "bom.csv"
    file.write_bytes(b"\xef\xbb\xbf" + (DEPOSITS + SETTLED.replace("{", "{\n")).encode())
    told = quiet.json("import", "deposits", str(file))
    assert counts(told) == {"deposits": (1, 0, 0)}


def test_wrong_usage(untouched: Operated) -> None:
    """Each with exit code 2 and what to do."""
    for arguments, message in (
        (("sums", "x.csv"), "none of all, deposits"),
        (("all",), "takes --from-database"),
        (("deposits",), "takes a CSV file"),
        (("deposits", "/nowhere/x.csv"), "cannot be read"),
        (("all", "--from-database", "postgres:/u:hunter2@h/db"), "must be a libpq URI"),
        (("all", "--from-database", "postgresql://h/db", "--map", "/nowhere.toml"), "cannot be read"),
    ):
        done = untouched.command("import", *arguments)
        assert done.returncode == 2, done.stderr
        assert message in " ".join(done.stderr.split())
        assert "hunter2" not in done.stderr


def test_a_reference_that_is_here_belongs_to_one_deposit(quiet: Operated) -> None:
    """Another deposit with it is a fault that names the first; so is a third that is in the same file."""
    quiet.correlate("dep_9")
    third = SETTLED.replace("ref-1", "ref-dep_9") + OPEN.replace("ref-3", "ref-2") + REVERSED
    told = imported(quiet, "deposits", DEPOSITS + third, code=1)
    assert sorted((fault["object_id"], fault["what"]) for fault in told["faults"]) == [
        ("dep_1", "merchant_reference ref-dep_9 belongs to dep_9"),
        ("dep_2", "merchant_reference ref-2 belongs to dep_3"),
        ("dep_3", "merchant_reference ref-2 belongs to dep_2"),
    ]
