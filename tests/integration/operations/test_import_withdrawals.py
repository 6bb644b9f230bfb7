"""`tallyhook import` of withdrawals, chunks and reversals from files: what was done once is never done again."""

import pytest

from tests.integration.operations.import_files import FILLS, REVERSALS, WITHDRAWALS, counts, imported
from tests.integration.operations.operated import Operated
from tests.integration.operations.sink_feed import SinkFeed, withdrawal_body


def test_withdrawals_are_closed_refunded_and_compensated_once(quiet: Operated, sink: SinkFeed) -> None:
    """A row's moments and tombstones keep each one-shot from leaving again; what is new goes out."""
    sink.release()
    rows = (
        "wdr_1,8,settled,1000,27,1000,0,0,tick-1,2026-03-01T10:00:00Z,,\n"
        "wdr_2,6,expired,1000,27,700,0,300,tick-2,,2026-03-01T10:00:00Z,\n"
        "wdr_3,2,rejected,1000,27,0,1000,,tick-3,,,2026-03-01T10:00:00Z\n"
        "wdr_4,3,partially_filled,1000,27,300,700,,tick-4,,,\n"
    )
    assert counts(imported(quiet, "withdrawals", WITHDRAWALS + rows)) == {"withdrawals": (4, 0, 0)}
    fills = "leg_1,wdr_4,1,300,8,2026-03-01T10:00:00Z,,btxn_1,2026-03-01T11:00:00Z\n"
    tombstone = "leg_1,wdr_4,BANK_RECALL,btxn_1,btxn_2,2026-03-01T11:00:00Z,\n"
    assert counts(imported(quiet, "fills", FILLS + fills)) == {"fills": (1, 0, 0)}
    assert counts(imported(quiet, "reversals", REVERSALS + tombstone)) == {"reversals": (1, 0, 0)}
    told = quiet.rows("SELECT amount_minor, status_snapshot, effect_enqueued_at FROM pg_withdrawal_fill_reversals")
    assert told[0][:2] == (300, "partially_filled")
    assert told[0][2] is not None
    sink.claim()
    sink.apply(
        withdrawal_body("wdr_1", 9, "settled", filled=1000, remaining=0),
        withdrawal_body("wdr_2", 7, "expired", filled=700, remaining=0),
        withdrawal_body("wdr_3", 3, "rejected", filled=0, remaining=1000),
        withdrawal_body("wdr_4", 2, "partially_filled", reversal=("leg_1", 300, "btxn_1", "btxn_2")),
        withdrawal_body("wdr_4", 3, "partially_filled", fill=("leg_1", 300, "btxn_1")),
    )
    assert quiet.rows("SELECT dedupe_key FROM pg_outbox") == []
    sink.apply(withdrawal_body("wdr_4", 9, "settled", filled=1000, remaining=0))
    assert quiet.rows("SELECT dedupe_key FROM pg_outbox") == [("withdrawal:wdr_4:close_withdrawal",)]
    assert quiet.rows("SELECT our_ref FROM pg_withdrawals WHERE pg_withdrawal_id = 'wdr_4'") == [("tick-4",)]


def test_a_closing_leaves_once_also_after_a_later_reversal(quiet: Operated, sink: SinkFeed) -> None:
    """The tables of the pages keep only closed_at, which a reversal takes back; the closing does not leave again."""
    sink.release()
    imported(quiet, "withdrawals", WITHDRAWALS + "wdr_1,8,settled,1000,27,1000,0,0,t,2026-03-01T10:00:00Z,,\n")
    sink.claim()
    sink.apply(withdrawal_body("wdr_1", 4, "partially_filled", reversal=("leg_1", 300, "btxn_1", "btxn_2")))
    sink.apply(withdrawal_body("wdr_1", 9, "settled", filled=1000))
    left = quiet.rows("SELECT dedupe_key FROM pg_outbox")
    assert left == [("withdrawal-fill:leg_1:reverse:compensate_reversed_fill",)]
    assert quiet.rows("SELECT closed_at IS NOT NULL FROM pg_withdrawals") == [(True,)]


@pytest.mark.parametrize(
    ("closed_at", "reason"), [("", "reversed_after_settlement"), ("2026-03-01T12:00:00Z", "already_closed")]
)
def test_whether_a_reversal_came_after_the_settlement_is_told_by_the_closing(
    quiet: Operated, sink: SinkFeed, closed_at: str, reason: str
) -> None:
    """An order that is settled and open was taken back after it was closed, and stays open."""
    sink.release()
    row = f"wdr_1,8,settled,1000,27,1000,0,0,t,{closed_at},,\n"
    imported(quiet, "withdrawals", WITHDRAWALS + row, code=0 if closed_at else 1)
    imported(quiet, "fills", FILLS + "leg_1,wdr_1,1,300,8,,,btxn_1,2026-03-01T11:00:00Z\n")
    imported(quiet, "reversals", REVERSALS + "leg_1,wdr_1,BANK_RECALL,btxn_1,btxn_2,2026-03-01T11:00:00Z,\n")
    sink.claim()
    sink.apply(withdrawal_body("wdr_1", 9, "settled", filled=1000))
    assert quiet.rows("SELECT reason FROM pg_webhook_inbox") == [(reason,)]
    assert quiet.rows("SELECT dedupe_key FROM pg_outbox") == []


def test_what_the_old_handler_left_undone_is_told(quiet: Operated) -> None:
    """Its row is taken over as it is, and a person is told what nobody will do. Exit code 1."""
    rows = (
        "wdr_1,6,expired,1000,27,700,0,300,t,,,\nwdr_2,6,settled,1000,27,1000,0,0,t,,,\nwdr_3,1,rejected,9,,,9,,t,,,\n"
    )
    told = imported(quiet, "withdrawals", WITHDRAWALS + rows, code=1)
    assert [(row["what"], row["object_id"]) for row in told["remarks"]] == [
        ("it is expired and refund_enqueued_at is empty", "wdr_1"),
        ("it is settled, nothing remains, and closed_at is empty", "wdr_2"),
        ("it is rejected and user_lock_released_at is empty", "wdr_3"),
    ]
    assert counts(told) == {"withdrawals": (3, 0, 0)}
    again = imported(quiet, "withdrawals", WITHDRAWALS + rows, code=1)
    assert (again["remarks"], counts(again)) == (told["remarks"], {"withdrawals": (0, 3, 0)})
    quiet.connection.execute(
        "UPDATE pg_withdrawals SET refund_enqueued_at = now(), closed_at = now(), user_lock_released_at = now()"
    )
    assert imported(quiet, "withdrawals", WITHDRAWALS + rows)["remarks"] == []


def test_a_handler_without_the_moments_has_done_what_the_status_asks(quiet: Operated) -> None:
    """Tables without refund_enqueued_at and user_lock_released_at: neither leaves again."""
    header = WITHDRAWALS.replace(",refund_enqueued_at,user_lock_released_at", "")
    rows = "wdr_1,6,expired,1000,27,700,0,300,t,\nwdr_3,1,rejected,9,,,9,,t,\nwdr_4,1,open,9,,,9,,t,\n"
    imported(quiet, "withdrawals", header + rows)
    marks = quiet.rows(
        "SELECT refund_enqueued_at IS NOT NULL, user_lock_released_at IS NOT NULL FROM pg_withdrawals"
        " ORDER BY pg_withdrawal_id"
    )
    assert marks == [(True, False), (False, True), (False, False)]


@pytest.mark.parametrize(
    ("what", "text", "fault"),
    [
        ("fills", FILLS + "leg_1,wdr_9,1,300,8,,,b,\n", "its withdrawal wdr_9 is not known"),
        ("reversals", REVERSALS + "leg_1,wdr_1,BANK_RECALL,b1,b2,2026-03-01T11:00:00Z,\n", "no fill of the chunk"),
        ("reversals", REVERSALS + "leg_1,wdr_1,WHIM,b1,b2,2026-03-01T11:00:00Z,\n", "reason_code is 'WHIM'"),
        (
            "reversals",
            REVERSALS + "leg_1,wdr_1,BANK_RECALL,b,b,2026-03-01T11:00:00Z,\n",
            "as reversed and as reversing",
        ),
        (
            "reversals",
            REVERSALS + "leg_0,wdr_1,BANK_RECALL,b1,b2,2026-03-01T11:00:00Z,\n"
            "leg_00,wdr_1,BANK_RECALL,b2,b3,2026-03-01T11:00:00Z,\n",
            "balance transaction b2 belongs to another reversal too",
        ),
        (
            "reversals",
            REVERSALS.replace("\n", ",effect_enqueued_at\n") + "leg_0,wdr_1,BANK_RECALL,b1,b2,2026-03-01T11:00:00Z,,\n",
            "the old handler has not compensated this chunk",
        ),
        ("transactions", "btxn_id,type,direction,amount_minor,created_at\nb,t,d,1,then\n", "created_at is 'then'"),
        ("balances", "user_id,balance_minor\nu,1.5\n", "balance_minor is '1.5'"),
    ],
)
def test_facts_that_do_not_fit_are_refused(quiet: Operated, what: str, text: str, fault: str) -> None:
    """Each with its line; nothing of the file is written."""
    imported(quiet, "withdrawals", WITHDRAWALS + "wdr_1,3,open,1000,27,0,1000,,t,,,\n")
    imported(quiet, "fills", FILLS + "leg_0,wdr_1,1,300,8,,,b1,\nleg_00,wdr_1,2,300,8,,,b2,\n")
    told = imported(quiet, what, text, code=1)
    assert any(fault in found["what"] for found in told["faults"]), told
    assert quiet.rows("SELECT count(*) FROM pg_withdrawal_fill_reversals") == [(0,)]


@pytest.mark.parametrize("what", ["withdrawals", "fills", "reversals", "correlations"])
def test_files_that_a_sink_must_not_see_alone_are_refused_beside_it(quiet: Operated, sink: SinkFeed, what: str) -> None:
    """A withdrawal without its reversals could be compensated twice in between."""
    file = quiet.folder / "w.csv"
    file.write_text("")
    done = quiet.command("import", what, str(file))
    assert done.returncode == 2
    assert "a sink runs" in done.stderr
    sink.release()
    assert "the first line lacks" in quiet.command("import", what, str(file)).stderr


def test_events_that_waited_for_an_imported_row_go_on(quiet: Operated, sink: SinkFeed) -> None:
    """A sparse event could not build its withdrawal; the import did, and it goes on by itself."""
    sink.apply(withdrawal_body("wdr_1", 4, "partially_filled", filled=300, sparse=True))
    assert quiet.rows("SELECT verdict, parked_reason FROM pg_webhook_inbox") == [("parked", "snapshot")]
    sink.release()
    imported(quiet, "withdrawals", WITHDRAWALS + "wdr_1,3,open,1000,27,0,1000,,tick-1,,,\n")
    sink.claim()
    sink.look()
    assert quiet.rows("SELECT verdict, parked_reason FROM pg_webhook_inbox") == [("advanced", None)]
    assert quiet.rows("SELECT pg_version, filled_minor FROM pg_withdrawals") == [(4, 300)]
