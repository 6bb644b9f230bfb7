"""`tallyhook compare`: what an old handler that runs beside made of the same webhooks, row by row."""

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from typing import Any, LiteralString

import pytest

from tests.integration.operations.old_handlers import (
    PARTIAL_FILLS_PAGE,
    OldHandler,
    old_handler,
    take_over,
)
from tests.integration.operations.operated import Operated, deposit_body
from tests.integration.operations.sink_feed import MONEY, SinkFeed, withdrawal_body
from tests.running import await_true

BODIES = (
    deposit_body("evt_1", "dep_1", 5, "settled"),
    deposit_body("evt_2", "dep_2", 4, "settled"),
    deposit_body("evt_3", "dep_2", 6, "reversed", **MONEY),
    deposit_body("evt_4", "dep_3", 1, "open"),
    withdrawal_body("wdr_1", 3, "partially_filled", filled=300, remaining=700, fill=("leg_1", 300, "btxn_1")),
    withdrawal_body("wdr_1", 4, "partially_filled", filled=300, remaining=700, reversal=("leg_1", 300, "btxn_1", "b2")),
    withdrawal_body("wdr_2", 7, "settled", filled=1000, remaining=0),
)


@pytest.fixture
def old(quiet: Operated) -> Iterator[OldHandler]:
    """A handler that has seen every body, as this installation's sink has."""
    with old_handler(quiet.settings.database, f"o{uuid.uuid4().hex[:12]}") as made:
        made.correlate("dep_1", "dep_2", "dep_3")
        made.deliver_all(BODIES)
        yield made


@pytest.fixture
def both(quiet: Operated, sink: SinkFeed, old: OldHandler) -> OldHandler:
    """The same webhooks here and there."""
    quiet.correlate("dep_1", "dep_2", "dep_3")
    sink.apply(*BODIES)
    return old


def compare(place: Operated, old: OldHandler, *options: str, code: int = 0) -> Any:
    """What the command prints as JSON."""
    return place.json("compare", *address(place, old), "--settle-seconds", "0.05", *options, code=code)


def address(place: Operated, old: OldHandler) -> tuple[str, ...]:
    """Where the old handler's tables are."""
    assert place.settings.database.url is not None
    return "--from-database", place.settings.database.url.get_secret_value(), "--from-schema", old.schema


def found(told: Any) -> list[tuple[Any, ...]]:
    """The differences without their events."""
    return [
        (row["kind"], row["id"], row["what"], row["member"], row["here"], row["there"]) for row in told["differences"]
    ]


def test_equal_handlers_have_no_difference(quiet: Operated, both: OldHandler) -> None:
    """Every kind is compared, and exit code 0."""
    told = compare(quiet, both)
    assert (told["differences"], told["whole"], told["without"]) == ([], True, [])
    assert told["compared"] == {
        "deposits": 3,
        "flags": 0,
        "withdrawals": 2,
        "fills": 1,
        "reversals": 1,
        "transactions": 0,
        "balances": 2,
    }


def test_a_handler_of_the_page_on_partial_fills_is_equal(quiet: Operated, sink: SinkFeed) -> None:
    """Its zeros where nothing is known are no difference, nor are columns that it does not keep."""
    with old_handler(quiet.settings.database, f"o{uuid.uuid4().hex[:12]}", PARTIAL_FILLS_PAGE) as old:
        quiet.correlate("dep_1", "dep_2", "dep_3")
        old.correlate("dep_1", "dep_2", "dep_3")
        old.deliver_all(BODIES)
        sink.apply(*BODIES)
        assert compare(quiet, old)["differences"] == []


FAULTS: dict[LiteralString, tuple[Any, ...]] = {
    "UPDATE pg_deposits SET pg_version = 6 WHERE pg_deposit_id = 'more_1'": (
        *("deposits", "more_1", "behind", "pg_version", 5, 6),
    ),
    "UPDATE pg_deposits SET pg_version = 2 WHERE pg_deposit_id = 'more_2'": (
        *("deposits", "more_2", "ahead", "pg_version", 5, 2),
    ),
    "UPDATE pg_deposits SET status = 'open' WHERE pg_deposit_id = 'more_3'": (
        *("deposits", "more_3", "differs", "status", "settled", "open"),
    ),
    "UPDATE pg_deposits SET balance_transaction_id = 'b' WHERE pg_deposit_id = 'more_4'": (
        *("deposits", "more_4", "differs", "balance_transaction_id", None, "b"),
    ),
    "UPDATE pg_deposits SET fee_total_minor = 140, credited_amount_minor = 9860 WHERE pg_deposit_id = 'more_5'": (
        *("deposits", "more_5", "differs", "fee_total_minor", 150, 140),
    ),
    "UPDATE pg_deposits SET reversed_at = NULL WHERE pg_deposit_id = 'dep_2'": (
        *("deposits", "dep_2", "differs", "reversed_at", "set", "not set"),
    ),
    "DELETE FROM pg_deposits WHERE pg_deposit_id = 'dep_3'": ("deposits", "dep_3", "missing there", None, None, None),
    "INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, our_order_id, our_user_id) VALUES ('zz', 1, 's', 'o',"
    " 'u')": ("deposits", "zz", "missing here", None, None, None),
    "UPDATE pg_withdrawals SET closed_at = NULL WHERE pg_withdrawal_id = 'wdr_2'": (
        *("withdrawals", "wdr_2", "differs", "closed_at", "set", "not set"),
    ),
    "UPDATE pg_withdrawals SET refund_enqueued_at = now() WHERE pg_withdrawal_id = 'wdr_3'": (
        *("withdrawals", "wdr_3", "differs", "refund_enqueued_at", "not set", "set"),
    ),
    "UPDATE pg_withdrawals SET user_lock_released_at = now() WHERE pg_withdrawal_id = 'wdr_4'": (
        *("withdrawals", "wdr_4", "differs", "user_lock_released_at", "not set", "set"),
    ),
    "UPDATE pg_withdrawals SET filled_minor = 999 WHERE pg_withdrawal_id = 'wdr_5'": (
        *("withdrawals", "wdr_5", "differs", "filled_minor", 1000, 999),
    ),
    "UPDATE pg_withdrawal_fills SET amount_minor = 301 WHERE leg_ref = 'leg_1'": (
        *("fills", "leg_1", "differs", "amount_minor", 300, 301),
    ),
    "UPDATE pg_withdrawal_fills SET reversed_at = now() WHERE leg_ref = 'leg_6'": (
        *("fills", "leg_6", "differs", "reversed_at", None, "a moment"),
    ),
    "DELETE FROM pg_withdrawal_fill_reversals WHERE leg_ref = 'leg_1'": (
        *("reversals", "leg_1", "missing there", None, None, None),
    ),
    "UPDATE pg_withdrawal_fill_reversals SET reason_code = 'ACCOUNT_FROZEN' WHERE leg_ref = 'leg_7'": (
        *("reversals", "leg_7", "differs", "reason_code", "BANK_RECALL", "ACCOUNT_FROZEN"),
    ),
    "INSERT INTO pg_balance_txns (btxn_id, type, direction, amount_minor, created_at) VALUES"
    " ('b', 't', 'd', 1, now())": ("transactions", "b", "missing here", None, None, None),
    "UPDATE pg_user_balances SET balance_minor = 9999 WHERE user_id = 'usr-dep_1'": (
        *("balances", "usr-dep_1", "differs", "balance_minor", 10_000, 9_999),
    ),
    "INSERT INTO pg_user_balances VALUES ('usr-x', 5)": ("balances", "usr-x", "missing here", None, None, None),
}


def test_every_difference_is_found(quiet: Operated, sink: SinkFeed, both: OldHandler) -> None:
    """Its kind, id, column and both values, and exit code 1; what was not changed is not told."""
    deposits = [f"more_{number}" for number in range(1, 6)]
    more = [deposit_body(f"evt_{key}", key, 5, "settled") for key in deposits]
    more += [withdrawal_body(f"wdr_{number}", 7, "settled", filled=1000) for number in range(3, 6)]
    more += [
        withdrawal_body("wdr_6", 3, "partially_filled", filled=300, remaining=700, fill=("leg_6", 300, "btxn_6")),
        withdrawal_body("wdr_7", 4, "open", filled=0, remaining=1000, reversal=("leg_7", 300, "btxn_7", "b7")),
    ]
    quiet.correlate(*deposits)
    both.correlate(*deposits)
    sink.apply(*more)
    both.deliver_all(more)
    assert compare(quiet, both)["differences"] == []
    for fault in FAULTS:
        assert both.connection.execute(fault).rowcount == 1, fault
    told = sorted(found(compare(quiet, both, code=1)), key=str)
    shown = [(*row[:5], "a moment") if row[:4] == ("fills", "leg_6", "differs", "reversed_at") else row for row in told]
    with_it = ("deposits", "more_5", "differs", "credited_amount_minor", 9_850, 9_860)
    assert set(shown) == {*FAULTS.values(), with_it}


def test_no_balance_and_a_balance_of_zero_are_the_same(quiet: Operated, both: OldHandler) -> None:
    """A handler that keeps all its users has many who were never credited."""
    both.connection.execute("INSERT INTO pg_user_balances VALUES ('usr-x', 0)")
    assert compare(quiet, both)["differences"] == []


def test_a_difference_names_the_events_that_made_ours(quiet: Operated, both: OldHandler) -> None:
    """With version and verdict, oldest first; of a balance its entries."""
    both.connection.execute("UPDATE pg_deposits SET status = 'open' WHERE pg_deposit_id = 'dep_2'")
    both.connection.execute("UPDATE pg_user_balances SET balance_minor = 1 WHERE user_id = 'usr-dep_2'")
    deposit, balance = compare(quiet, both, code=1)["differences"]
    assert [(led["event_id"], led["version"], led["verdict"]) for led in deposit["events"]] == [
        ("evt_2", 4, "advanced"),
        ("evt_3", 6, "advanced"),
    ]
    assert {led["event_id"] for led in balance["events"]} == {"evt_2", "evt_3"}
    shown = quiet.command("compare", *address(quiet, both), "--settle-seconds", "0").stdout
    assert 'deposits dep_2  differs  status: here "reversed", there "open"' in shown
    assert "evt_2 (v4 advanced), evt_3 (v6 advanced)" in shown
    assert "differences: 2 differs" in shown


def test_what_has_just_changed_is_passed_over(quiet: Operated, both: OldHandler) -> None:
    """Events are on their way to one of the two; the rows are counted."""
    both.connection.execute("UPDATE pg_deposits SET status = 'open' WHERE pg_deposit_id = 'dep_1'")
    told = compare(quiet, both, "--ignore-newer-than", "5m")
    assert told["differences"] == []
    assert told["fresh"] >= 5
    quiet.connection.execute("UPDATE pg_deposits SET updated_at = now() - interval '6 minutes'")
    both.connection.execute("UPDATE pg_deposits SET updated_at = now() - interval '6 minutes'")
    assert [row[:2] for row in found(compare(quiet, both, "--ignore-newer-than", "5m", code=1))] == [
        ("deposits", "dep_1")
    ]


def test_what_does_not_last_is_no_difference(quiet: Operated, both: OldHandler) -> None:
    """The old handler catches up while the comparison waits."""
    both.connection.execute("UPDATE pg_deposits SET status = 'open' WHERE pg_deposit_id = 'dep_1'")
    done: list[Any] = []
    command = threading.Thread(
        target=lambda: done.append(_run(quiet, both, "compare", "--settle-seconds", "3", "--json"))
    )
    command.start()
    reading = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tallyhook-compare' AND state = 'idle'"
    await_true(lambda: quiet.rows(reading) == [(1,)], 20, "the comparison to wait")
    looked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tallyhook-compare' AND query = 'COMMIT'"
    await_true(lambda: quiet.rows(looked) == [(1,)], 20, "its first look to be over")
    both.connection.execute("UPDATE pg_deposits SET status = 'settled' WHERE pg_deposit_id = 'dep_1'")
    command.join(30)
    assert done[0].returncode == 0, done[0].stdout + done[0].stderr


def test_it_stops_after_the_most_differences(quiet: Operated, both: OldHandler) -> None:
    """And says that it is not whole."""
    both.connection.execute("UPDATE pg_deposits SET status = 'open'")
    told = compare(quiet, both, "--most", "2", code=1)
    assert (len(told["differences"]), told["whole"]) == (2, False)


def test_what_cannot_be_read_there_is_told(quiet: Operated, both: OldHandler) -> None:
    """A row that breaks the rules is a difference of its own."""
    both.connection.execute("UPDATE pg_deposits SET credited_user_at = NULL WHERE pg_deposit_id = 'dep_1'")
    (row,) = compare(quiet, both, code=1)["differences"]
    assert (row["what"], row["here"]) == ("unreadable", None)
    assert "let the old handler credit it first" in row["there"]


def test_watching_tells_what_is_new_and_what_is_gone(quiet: Operated, both: OldHandler) -> None:
    """Each once; Ctrl-C ends it, with the exit code of the last look."""
    log = quiet.folder / "watch.log"
    with log.open("wb") as out:
        watching = subprocess.Popen(
            [
                *(sys.executable, "-m", "tallyhook", "compare", *address(quiet, both), "--watch"),
                *("--interval", "0.1", "--settle-seconds", "0.05"),
            ],
            env=quiet.variables(),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            await_true(lambda: "differences now: none" in log.read_text(), 30, "the first look")
            both.connection.execute("UPDATE pg_deposits SET status = 'open' WHERE pg_deposit_id = 'dep_1'")
            await_true(lambda: "deposits dep_1  differs  status" in log.read_text(), 20, "the difference")
            both.connection.execute("UPDATE pg_deposits SET status = 'settled' WHERE pg_deposit_id = 'dep_1'")
            await_true(lambda: "deposits dep_1  status differs no more" in log.read_text(), 20, "its end")
            watching.send_signal(signal.SIGINT)
            assert watching.wait(20) == 0, log.read_text()
        finally:
            watching.kill()
    assert log.read_text().count("deposits dep_1  differs") == 1


def test_imported_rows_are_compared_and_named(quiet: Operated, old: OldHandler) -> None:
    """After an import both are equal; what the old handler does later is a difference, led there by the import."""
    taken = take_over(quiet.settings.database, quiet.settings.installation, old.schema)
    assert (taken.different, taken.unfinished) == ([], [])
    assert compare(quiet, old)["differences"] == []
    old.deliver(deposit_body("evt_9", "dep_3", 8, "settled"))
    told = compare(quiet, old, code=1)
    assert {(row["kind"], row["id"]) for row in told["differences"]} == {
        ("deposits", "dep_3"),
        ("balances", "usr-dep_3"),
    }
    assert told["differences"][0]["events"][0]["event_id"] == "import:old-handler"


def test_wrong_usage(quiet: Operated, old: OldHandler) -> None:
    """Each with exit code 2 and what to do."""
    nothing = address(quiet, old)[:2]
    for arguments, message in (
        ((), "--from-database URL is needed"),
        ((*nothing, "--from-schema", "nowhere"), "has none of the tables pg_deposits"),
        ((*nothing, "--ignore-newer-than", "soon"), "give 30s, 5m or 2h"),
        ((*nothing, "--watch", "--json"), "give one of them"),
    ):
        done = quiet.command("compare", *arguments)
        assert done.returncode == 2, done.stderr
        assert message in " ".join(done.stderr.split())


def _run(place: Operated, old: OldHandler, command: str, *options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tallyhook", command, *address(place, old), *options],
        env=place.variables() | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
