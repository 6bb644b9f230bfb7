"""Withdrawals as rows: what advances, what is only marked, and what the world is told of it."""

from typing import Any

import pytest

from sinks.batch import Applier
from sinks.errors import CountDiffers
from sinks.plan import Plan
from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, chunk, taken_back, withdrawal

INBOX = "SELECT event_id, verdict, reason FROM pg_webhook_inbox ORDER BY partition, arrival_seq"
EFFECTS = "SELECT type, version, dedupe_key FROM pg_outbox ORDER BY partition, seq"
SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY id"
MARKS = (
    "SELECT closed_at IS NOT NULL, close_enqueued_at IS NOT NULL, refund_enqueued_at IS NOT NULL,"
    " user_lock_released_at IS NOT NULL FROM pg_withdrawals"
)


@pytest.fixture
def applier(road: Road) -> Applier:
    """An applier that owns partition 0."""
    return road.applier(0)


@pytest.fixture
def feed(applier: Applier) -> Feed:
    """Deliveries in partition 0."""
    return Feed(applier)


def eight_events(name: str = "wdr-1") -> list[Delivery]:
    """1,000 THB in 300 + 400 + 300: created, then matched and filled thrice, then the summary."""

    def totals(filled: int, remaining: int, fee: int, splits: int) -> dict[str, Any]:
        return {
            "filled_minor": filled,
            "remaining_minor": remaining,
            "fee_recognized_minor": fee,
            "settled_splits": splits,
        }

    partly = "partially_filled"
    one = chunk("leg-1", 30_000, fee_recognized_minor=802)
    two = chunk("leg-2", 40_000, sequence=2, fee_recognized_minor=1_070)
    three = chunk("leg-3", 30_000, sequence=3, fee_recognized_minor=803)
    return [
        withdrawal("e1", name, 1, "open"),
        withdrawal("e2", name, 2, "open", sparse=True, filled_minor=0, remaining_minor=70_000, matched_legs=1),
        withdrawal("e3", name, 3, partly, fill=one, **totals(30_000, 70_000, 802, 1)),
        withdrawal("e4", name, 4, partly, sparse=True, filled_minor=30_000, remaining_minor=30_000),
        withdrawal("e5", name, 5, partly, fill=two, **totals(70_000, 30_000, 1_872, 2)),
        withdrawal("e6", name, 6, partly, sparse=True, filled_minor=70_000, remaining_minor=0),
        withdrawal("e7", name, 7, "settled", fill=three, **totals(100_000, 0, 2_675, 3)),
        withdrawal("e8", name, 8, "settled", refunded_minor=0, **totals(100_000, 0, 2_675, 3)),
    ]


def test_one_order_and_its_eight_webhooks(road: Road, feed: Feed) -> None:
    """Closed once, by the third chunk; three chunks, no fee that differs; each effect names its event and version."""
    result = feed.apply(*eight_events())
    assert road.rows("SELECT type, version FROM pg_outbox ORDER BY seq") == [
        ("update_local_status", 1),
        ("update_local_status", 2),
        ("show_progress", 3),
        ("show_progress", 4),
        ("show_progress", 5),
        ("show_progress", 6),
        ("close_withdrawal", 7),
    ]
    row = road.rows(
        "SELECT aggregatetype, aggregateid, topic, dedupe_key, causation_id FROM pg_outbox WHERE version = 7"
    )
    assert row == [("withdrawal", "wdr-1", "close_withdrawal", "withdrawal:wdr-1:close_withdrawal", "e7")]
    assert road.rows(
        "SELECT leg_ref, sequence, amount_minor, fee_recognized_minor, settled_at::text, reversed_at"
        " FROM pg_withdrawal_fills ORDER BY 1"
    ) == [
        ("leg-1", 1, 30_000, 802, "2026-05-01 09:30:00.5+00", None),
        ("leg-2", 2, 40_000, 1_070, "2026-05-01 09:30:00.5+00", None),
        ("leg-3", 3, 30_000, 803, "2026-05-01 09:30:00.5+00", None),
    ]
    assert road.rows(
        "SELECT pg_version, status, amount_total_minor, fee_total_minor, total_locked_minor, filled_minor,"
        " remaining_minor, refunded_minor, fee_recognized_minor, settled_splits, max_splits, our_ref"
        " FROM pg_withdrawals"
    ) == [(8, "settled", 100_000, 2_675, 102_675, 100_000, 0, 0, 2_675, 3, 4, "ref-wdr-1")]
    assert road.rows(MARKS) == [(True, True, False, False)]
    assert road.rows(INBOX)[-1] == ("e8", "advanced", "already_closed")
    assert (result.advanced, result.fee_differs) == (1, 0)


def test_what_an_event_does_not_carry_keeps_its_value(road: Road, feed: Feed) -> None:
    """Totals and members that are set once survive sparse snapshots, and a filled total that is absent starts at 0."""
    first = withdrawal("a", "wdr-1", 1, "open", sparse=True, amount_total_minor=100_000, remaining_minor=100_000)
    feed.apply(first)
    columns = (
        "SELECT filled_minor, remaining_minor, fee_total_minor, max_splits, refunded_minor, our_ref FROM pg_withdrawals"
    )
    assert road.rows(columns) == [(0, 100_000, None, None, None, None)]
    feed.apply(withdrawal("b", "wdr-1", 2, "open"), withdrawal("c", "wdr-1", 3, "open", sparse=True, filled_minor=5))
    assert road.rows(columns) == [(5, 100_000, 2_675, 4, None, "ref-wdr-1")]


@pytest.mark.parametrize("apart", [False, True])
def test_a_late_event_fills_in_what_is_set_once(road: Road, feed: Feed, apart: bool) -> None:
    """Only these members change, and the moment of the row's change; the version and the totals stay."""
    sparse = withdrawal("a", "wdr-1", 5, "open", sparse=True, amount_total_minor=100_000, remaining_minor=7)
    late = withdrawal("b", "wdr-1", 1, "partially_filled")
    feed.apply(sparse, *([] if apart else [late]))
    before = road.one("SELECT updated_at FROM pg_withdrawals")
    if apart:
        feed.apply(late)
        assert road.one("SELECT updated_at FROM pg_withdrawals") > before
    assert road.rows(INBOX)[-1] == ("b", "late", "older_version")
    columns = "SELECT pg_version, status, remaining_minor, fee_total_minor, total_locked_minor, max_splits, our_ref"
    assert road.rows(f"{columns} FROM pg_withdrawals".encode()) == [(5, "open", 7, 2_675, 102_675, 4, "ref-wdr-1")]
    moment = road.one("SELECT updated_at FROM pg_withdrawals")
    feed.apply(withdrawal("c", "wdr-1", 2, "open", merchant_reference="another", fee_total_minor=1))
    assert road.rows("SELECT fee_total_minor, our_ref, updated_at FROM pg_withdrawals") == [
        (2_675, "ref-wdr-1", moment)
    ]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("reversal_first", [False, True])
def test_a_reversal_after_settlement_keeps_it_open(road: Road, feed: Feed, reversal_first: bool, apart: bool) -> None:
    """Opened again, compensated once, its successor kept, and never closed again, in whatever order things arrive."""
    back = withdrawal(
        "r9",
        "wdr-1",
        9,
        "settled",
        remaining_minor=0,
        filled_minor=100_000,
        fill=chunk("leg-3", 30_000),
        reversal=taken_back("leg-3"),
        replacement="wdr-2",
    )
    life = eight_events()
    after = withdrawal("e10", "wdr-1", 10, "settled", remaining_minor=0)
    order = [back, *life, after] if reversal_first else [*life, back, after]
    for batch in [[event] for event in order] if apart else [order]:
        feed.apply(*batch)
    assert road.rows("SELECT pg_version, status, closed_at, replacement_withdrawal_id FROM pg_withdrawals") == [
        (10, "settled", None, "wdr-2")
    ]
    closed = [] if reversal_first else ["withdrawal:wdr-1:close_withdrawal"]
    keys = [key for kind, _, key in road.rows(EFFECTS) if kind in ("close_withdrawal", "compensate_reversed_fill")]
    assert sorted(keys) == ["withdrawal-fill:leg-3:reverse:compensate_reversed_fill", *closed]
    assert road.rows("SELECT leg_ref, reversed_at::text FROM pg_withdrawal_fills WHERE reversed_at IS NOT NULL") == [
        ("leg-3", "2026-05-01 09:59:59.123+00")
    ]
    assert road.rows(
        "SELECT reason_code, amount_minor, status_snapshot, reversed_at::text, effect_enqueued_at IS NOT NULL"
        " FROM pg_withdrawal_fill_reversals"
    ) == [("BANK_RECALL", 30_000, "settled", "2026-05-01 09:59:59.123+00", True)]
    assert road.rows(INBOX)[-1] == ("e10", "advanced", "reversed_after_settlement")


def test_opened_again_and_closed_again(road: Road, feed: Feed) -> None:
    """A chunk is taken back while the order is open: closed twice, and the world hears of it once."""
    *_, summary = eight_events()
    feed.apply(*eight_events()[:7])
    feed.apply(withdrawal("r6", "wdr-1", 6, "partially_filled", fill=chunk("leg-1"), reversal=taken_back("leg-1")))
    assert road.rows(MARKS) == [(False, True, False, False)]
    feed.apply(summary)
    assert road.rows(MARKS) == [(True, True, False, False)]
    assert [kind for kind, *_ in road.rows(EFFECTS)].count("close_withdrawal") == 1
    assert road.rows(INBOX)[-1] == ("e8", "advanced", "already_closed")


def test_marks_keep_their_first_moment(road: Road, feed: Feed) -> None:
    """What was told once stays marked with that moment while the order is opened, moved on and closed again."""
    moments = "SELECT close_enqueued_at, closed_at FROM pg_withdrawals"
    feed.apply(*eight_events())
    ((told, closed),) = road.rows(moments)
    assert told == closed
    feed.apply(
        withdrawal("r9", "wdr-1", 9, "partially_filled", fill=chunk("leg-1"), reversal=taken_back("leg-1")),
        withdrawal("e10", "wdr-1", 10, "partially_filled"),
    )
    assert road.rows(moments) == [(told, None)]
    feed.apply(withdrawal("e11", "wdr-1", 11, "settled", remaining_minor=0))
    ((still_told, closed_again),) = road.rows(moments)
    assert (still_told, closed_again > closed) == (told, True)


def test_a_late_reversal_only_marks_the_row(road: Road, feed: Feed) -> None:
    """Version and totals stay, the row is open again and the chunk marked; the same reversal again changes nothing."""
    feed.apply(*eight_events())
    back = withdrawal("r4", "wdr-1", 4, "partially_filled", fill=chunk("leg-1"), reversal=taken_back("leg-1"))
    again = withdrawal("r5", "wdr-1", 5, "partially_filled", fill=chunk("leg-1"), reversal=taken_back("leg-1"))
    feed.apply(back)
    first = road.rows("SELECT pg_version, closed_at, close_enqueued_at IS NOT NULL, updated_at FROM pg_withdrawals")
    assert first[0][:3] == (8, None, True)
    feed.apply(again)
    assert (
        road.rows("SELECT pg_version, closed_at, close_enqueued_at IS NOT NULL, updated_at FROM pg_withdrawals")
        == first
    )
    assert road.rows(INBOX)[-2:] == [("r4", "late", "late_fact"), ("r5", "late", "older_version")]
    assert [kind for kind, *_ in road.rows(EFFECTS)].count("compensate_reversed_fill") == 1
    assert road.one("SELECT count(*) FROM pg_withdrawal_fills WHERE reversed_at IS NOT NULL") == 1


def test_ends_are_told_once(road: Road, feed: Feed) -> None:
    """A refund for an order that expired half filled, and a lock released: each mark outlives later events."""
    half: dict[str, Any] = {
        "filled_minor": 70_000,
        "remaining_minor": 30_000,
        "refunded_minor": 30_000,
        "fee_recognized_minor": 1_872,
    }
    feed.apply(withdrawal("x9", "wdr-1", 9, "expired", **half), withdrawal("x10", "wdr-1", 10, "canceled", sparse=True))
    feed.apply(withdrawal("x11", "wdr-1", 11, "expired", sparse=True), withdrawal("x12", "wdr-1", 12, "rejected"))
    feed.apply(withdrawal("x13", "wdr-1", 13, "rejected", sparse=True))
    assert road.rows(EFFECTS) == [
        ("refund_unfilled", 9, "withdrawal:wdr-1:refund_unfilled"),
        ("release_user_lock", 12, "withdrawal:wdr-1:release_user_lock"),
    ]
    assert road.one("SELECT payload FROM pg_outbox WHERE version = 9") == {
        "withdrawal_id": "wdr-1",
        "ticket": "ref-wdr-1",
        "refunded_minor": 30_000,
        "fee_unused_minor": 803,
        "release_minor": 30_803,
        "debited_minor": 71_872,
    }
    assert road.rows(MARKS) == [(False, False, True, True)]


@pytest.mark.parametrize("version", [4, 9])
def test_a_row_that_rose_meanwhile_keeps_its_version(road: Road, feed: Feed, version: int) -> None:
    """Another writer raises it between the look and the write: decided anew, a late one marks what it finds then."""
    feed.apply(*eight_events())
    write = feed.applier._statements.write

    def write_after_another(topic: str, plan: Plan) -> None:
        road.execute("UPDATE pg_withdrawals SET pg_version = 9, status = 'theirs', our_ref = 't' WHERE pg_version = 8")
        write(topic, plan)

    feed.applier._statements.write = write_after_another  # type: ignore[method-assign]
    fill, reversal = chunk("leg-1"), taken_back("leg-1")
    result = feed.apply(withdrawal("r", "wdr-1", version, "partially_filled", fill=fill, reversal=reversal))
    assert result.repeated == {"conflict": 1}
    assert road.rows(INBOX)[-1] == ("r", "late", "late_fact")
    assert road.rows("SELECT pg_version, status, our_ref, closed_at FROM pg_withdrawals") == [(9, "theirs", "t", None)]


def test_a_row_that_somebody_else_moved(road: Road, feed: Feed) -> None:
    """A row that only markers change must be as it was read: else nothing is written, and the count is named."""
    feed.apply(*eight_events())
    road.execute("CREATE FUNCTION pass_over() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
    road.execute("CREATE TRIGGER pass_over BEFORE UPDATE ON pg_withdrawals FOR EACH ROW EXECUTE FUNCTION pass_over()")
    back = withdrawal("r4", "wdr-1", 4, "partially_filled", fill=chunk("leg-1"), reversal=taken_back("leg-1"))
    with pytest.raises(CountDiffers, match="mark_withdrawals changed 0 rows instead of 1"):
        feed.apply(back)
    feed.next_offset = 8
    with pytest.raises(CountDiffers, match="write_withdrawals changed 0 rows instead of 1"):
        feed.apply(withdrawal("e9", "wdr-1", 9, "settled"))
    assert road.rows("SELECT * FROM pg_withdrawal_fill_reversals") == []
    assert road.one("SELECT count(*) FROM pg_webhook_inbox") == 8


def test_withdrawals_stay_settled_after_the_inbox_was_pruned(road: Road, feed: Feed) -> None:
    """Without inbox and outbox the rows and facts alone keep every event of a life from acting again."""
    life = [
        *eight_events(),
        withdrawal("r9", "wdr-1", 9, "expired", fill=chunk("leg-1"), reversal=taken_back("leg-1")),
    ]
    feed.apply(*life)
    road.execute("DELETE FROM pg_webhook_inbox")
    road.execute("DELETE FROM pg_outbox")
    again = feed.apply(*life)
    assert (again.verdicts["late"], again.verdicts["quarantined"], sum(again.effects.values())) == (9, 0, 0)
