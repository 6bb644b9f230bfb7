"""What cannot build its withdrawal's row waits for the event that can, and goes on after it in order of arrival."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from sinks.parking import BUILT_CHECK_SECONDS
from tallyhook.clock import SystemClock
from tallyhook.settings import SinkSettings
from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, chunk, deposit, taken_back, withdrawal
from tests.integration.sinks.left import left

INBOX = (
    "SELECT event_id, arrival_seq, verdict, reason, parked_reason, processed_at IS NULL FROM pg_webhook_inbox"
    " ORDER BY partition, arrival_seq"
)
EFFECTS = "SELECT type, causation_id FROM pg_outbox ORDER BY partition, seq"
SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY id"


@dataclass
class SetClock(SystemClock):
    """A clock whose monotonic time the test moves on."""

    seconds: float = field(default=0.0)

    def monotonic_seconds(self) -> float:
        """What the test has set."""
        return self.seconds


def early(object_id: str = "wdr-1") -> list[Delivery]:
    """Sparse events, the last of which brings a reversal; then the one that builds the row, and one after it."""
    return [
        withdrawal("m2", object_id, 2, "open", sparse=True, filled_minor=0, remaining_minor=70_000),
        withdrawal("f3", object_id, 3, "partially_filled", sparse=True, filled_minor=30_000, fill=chunk("leg-1")),
        withdrawal(
            "r9",
            object_id,
            9,
            "partially_filled",
            sparse=True,
            filled_minor=30_000,
            fill=chunk("leg-1"),
            reversal=taken_back("leg-1"),
        ),
        withdrawal("c1", object_id, 1, "open"),
        withdrawal("x4", object_id, 4, "open", sparse=True, remaining_minor=30_000),
    ]


def in_one(road: Road, life: list[Delivery]) -> None:
    """All in one batch."""
    Feed(road.applier(0)).apply(*life)


def one_by_one(road: Road, life: list[Delivery]) -> None:
    """A batch each."""
    feed = Feed(road.applier(0))
    for event in life:
        feed.apply(event)


def over_restarts(road: Road, life: list[Delivery]) -> None:
    """A batch each, each by another owner."""
    for number, event in enumerate(life):
        Feed(road.applier(0), next_offset=number, next_source=number).apply(event)


WAYS = [in_one, one_by_one, over_restarts]


@pytest.mark.parametrize("way", WAYS)
def test_the_row_is_built_first_and_the_waiting_follow(road: Road, way: Callable[[Road, list[Delivery]], None]) -> None:
    """In one batch, in several and across restarts: c1 builds, then m2, f3 and r9 as they came, then what follows."""
    way(road, early())
    assert road.rows(INBOX) == [
        ("m2", 0, "advanced", None, None, False),
        ("f3", 1, "advanced", None, None, False),
        ("r9", 2, "advanced", None, None, False),
        ("c1", 3, "advanced", None, None, False),
        ("x4", 4, "late", "older_version", None, False),
    ]
    assert road.rows(EFFECTS) == [
        ("update_local_status", "c1"),
        ("update_local_status", "m2"),
        ("show_progress", "f3"),
        ("compensate_reversed_fill", "r9"),
    ]
    assert road.rows("SELECT pg_version, status, filled_minor, remaining_minor, our_ref FROM pg_withdrawals") == [
        (9, "partially_filled", 30_000, 70_000, "ref-wdr-1")
    ]
    assert road.rows("SELECT leg_ref, reversed_at IS NOT NULL FROM pg_withdrawal_fills") == [("leg-1", True)]
    assert road.one("SELECT count(*) FROM pg_withdrawal_fill_reversals") == 1


def test_all_ways_leave_the_same_rows(road: Road, twin: Road) -> None:
    """Every column, number and effect: where a batch ends makes no difference."""
    in_one(road, early())
    one_by_one(twin, early())
    assert left(road) == left(twin)


def test_they_wait_while_nothing_builds_the_row(road: Road) -> None:
    """Parked, whole, without effect and without a fact; a redelivery is one, a replay is nothing."""
    feed = Feed(road.applier(0))
    m2, f3, r9, *_ = early()
    feed.apply(m2, f3, m2, r9)
    result = feed.apply(f3)
    feed.apply(f3, replayed_from=1)
    assert [row[:2] + row[4:] for row in road.rows(INBOX)] == [
        (name, number, "snapshot", True) for number, name in enumerate(("m2", "f3", "r9"))
    ]
    assert (result.verdicts["redelivered"], road.one("SELECT count(*) FROM redeliveries")) == (1, 2)
    assert [(row.reason, row.events) for row in feed.applier.parking.count([0])] == [("snapshot", 3)]
    for table in ("pg_withdrawals", "pg_withdrawal_fills", "pg_withdrawal_fill_reversals", "pg_outbox"):
        assert road.connection.execute(f"SELECT FROM {table}".encode()).rowcount == 0


@pytest.mark.parametrize("way", WAYS)
def test_one_that_is_refused_when_its_turn_comes(road: Road, way: Callable[[Road, list[Delivery]], None]) -> None:
    """Its chunk is known with other content by then: it goes into quarantine, out of the inbox; the others go on.

    A copy of it that comes later is judged anew.
    """
    first = withdrawal("f3", "wdr-1", 3, "partially_filled", sparse=True, filled_minor=30_000, fill=chunk("leg-1"))
    other = withdrawal("f5", "wdr-1", 5, "partially_filled", sparse=True, fill=chunk("leg-1", 7))
    third = withdrawal("m6", "wdr-1", 6, "partially_filled", sparse=True, remaining_minor=1)
    way(road, [first, other, third, withdrawal("c1", "wdr-1", 1, "open"), other])
    assert [row[:3] for row in road.rows(INBOX)] == [
        ("f3", 0, "advanced"),
        ("m6", 2, "advanced"),
        ("c1", 3, "advanced"),
    ]
    assert road.rows(SET_ASIDE) == [("f5", "fill_collision")] * 2
    assert road.rows("SELECT raw FROM quarantined_events") == [(other.body,)] * 2
    assert road.rows("SELECT amount_minor FROM pg_withdrawal_fills") == [(30_000,)]
    assert road.rows("SELECT pg_version, remaining_minor FROM pg_withdrawals") == [(6, 1)]


def test_refused_in_one_batch_and_in_many_is_the_same(road: Road, twin: Road) -> None:
    """Numbers of arrival, quarantine and redeliveries too."""
    other = withdrawal("f5", "wdr-1", 5, "partially_filled", sparse=True, fill=chunk("leg-1", 7))
    life = [
        withdrawal("f3", "wdr-1", 3, "partially_filled", sparse=True, fill=chunk("leg-1")),
        other,
        other,
        withdrawal("c1", "wdr-1", 1, "open"),
        withdrawal("m2", "wdr-1", 2, "open", sparse=True),
    ]
    in_one(road, life)
    one_by_one(twin, life)
    assert left(road) == left(twin)


def test_a_builder_that_is_refused_builds_nothing(road: Road) -> None:
    """The others go on waiting for one that is good."""
    feed = Feed(road.applier(0))
    feed.apply(
        withdrawal("w1", "wdr-0", 1, "partially_filled", fill=chunk("leg-1")),
        withdrawal("m2", "wdr-1", 2, "open", sparse=True),
        withdrawal("f3", "wdr-1", 3, "partially_filled", fill=chunk("leg-1")),
    )
    assert road.rows(SET_ASIDE) == [("f3", "fill_collision")]
    assert [row for row in road.rows(INBOX) if row[5]] == [("m2", 1, "parked", None, "snapshot", True)]
    feed.apply(withdrawal("c1", "wdr-1", 1, "open"))
    assert road.rows("SELECT pg_withdrawal_id, pg_version FROM pg_withdrawals ORDER BY 1") == [
        ("wdr-0", 1),
        ("wdr-1", 2),
    ]


def test_more_wait_than_one_transaction_takes(road: Road) -> None:
    """The batch ends after the builder; what waits goes in several transactions, before what came after the builder."""
    feed = Feed(road.applier(0, parked_rows_max=10))
    feed.apply(*(withdrawal(f"m{n}", "wdr-1", 10 + n, "open", sparse=True) for n in range(35)))
    result = feed.apply(
        withdrawal("other", "wdr-2", 1, "open"),
        withdrawal("c1", "wdr-1", 1, "open"),
        withdrawal("late", "wdr-1", 5, "partially_filled", sparse=True),
        withdrawal("next", "wdr-1", 99, "partially_filled", sparse=True),
    )
    assert (result.finished, result.taken) == (35, 4)
    causes = [row[1] for row in road.rows(EFFECTS)]
    assert causes == ["other", "c1", *(f"m{n}" for n in range(35)), "next"]
    assert road.rows("SELECT verdict FROM pg_webhook_inbox WHERE event_id = 'late'") == [("late",)]
    assert road.one("SELECT count(*) FROM pg_webhook_inbox WHERE processed_at IS NULL") == 0


def test_nothing_is_left_waiting_after_the_last_event(road: Road) -> None:
    """The builder is the last of its batch: all that waits for it has gone on when the batch is done."""
    feed = Feed(road.applier(0, parked_rows_max=10))
    feed.apply(*(withdrawal(f"m{n}", "wdr-1", 10 + n, "open", sparse=True) for n in range(35)))
    assert feed.apply(withdrawal("c1", "wdr-1", 1, "open")).finished == 35


def test_many_withdrawals_with_few_that_wait(road: Road, twin: Road) -> None:
    """The bound counts all that wait; beyond it the batch is cut, and the rows are as if one came after the other."""
    sparse = [withdrawal(f"m{n}", f"wdr-{n % 9}", 10 + n, "open", sparse=True) for n in range(27)]
    builders = [withdrawal(f"c{n}", f"wdr-{n}", 1, "open") for n in range(9)]
    later = [withdrawal(f"l{n}", f"wdr-{n}", 90, "canceled", sparse=True) for n in range(9)]
    cut = Feed(road.applier(0, parked_rows_max=10))
    cut.apply(*sparse)
    assert cut.apply(*builders, *later).taken == 18
    one_by_one(twin, [*sparse, *builders, *later])
    assert left(road) == left(twin)


def test_a_crash_between_the_row_and_what_waits(road: Road) -> None:
    """The builder was committed alone; the next owner finds what waits at once, and applies it before newer events."""
    feed = Feed(road.applier(0))
    feed.apply(*(withdrawal(f"m{n}", "wdr-1", 10 + n, "open", sparse=True) for n in range(3)))
    _import(road, "wdr-1")
    heir = Feed(road.applier(0), next_offset=3, next_source=3)
    heir.apply(withdrawal("new", "wdr-1", 99, "partially_filled", sparse=True))
    assert [row[1] for row in road.rows(EFFECTS)] == ["m0", "m1", "m2", "new"]
    assert heir.applier.apply_ready().finished == 0


def test_rows_that_come_from_elsewhere_are_found(road: Road) -> None:
    """At the claim, and every so often after it."""
    clock = road.clock = SetClock()
    feed = Feed(road.applier(0, 1))
    feed.apply(withdrawal("m1", "wdr-1", 11, "open", sparse=True), withdrawal("m2", "wdr-2", 12, "open", sparse=True))
    assert feed.applier.apply_ready().finished == 0
    _import(road, "wdr-1")
    assert feed.applier.apply_ready().finished == 0
    clock.seconds += BUILT_CHECK_SECONDS
    assert feed.applier.apply_ready().finished == 1
    _import(road, "wdr-2")
    other = road.applier(1)
    assert other.apply_ready().finished == 0
    other.claim([0])
    assert other.apply_ready().finished == 1
    assert road.rows("SELECT pg_withdrawal_id, pg_version FROM pg_withdrawals ORDER BY 1") == [
        ("wdr-1", 11),
        ("wdr-2", 12),
    ]


def test_a_deposit_and_a_withdrawal_of_one_name(road: Road) -> None:
    """Ids mean nothing: the one waits for its correlation, the other for its row, and neither for the other's."""
    feed = Feed(road.applier(0))
    feed.apply(deposit("d1", "same", 1, "open"), withdrawal("m2", "same", 2, "open", sparse=True))
    road.correlate("same")
    assert feed.applier.apply_ready().finished == 1
    assert [row[:3] for row in road.rows(INBOX)] == [("d1", 0, "advanced"), ("m2", 1, "parked")]
    feed.apply(withdrawal("c1", "same", 1, "open"))
    assert [row[2] for row in road.rows(INBOX)] == ["advanced"] * 3
    assert road.rows("SELECT aggregatetype, type FROM pg_outbox ORDER BY seq") == [
        ("deposit", "update_order_status"),
        ("withdrawal", "update_local_status"),
        ("withdrawal", "update_local_status"),
    ]


def test_the_limit_of_quarantine_holds_among_the_waiting(road: Road) -> None:
    """The worker stops among them: the rest waits on, and a new process applies it."""
    limited = SinkSettings(quarantine_limit=1)
    feed = Feed(road.applier(0, settings=limited))
    bad = [withdrawal(f"b{n}", "wdr-1", 10 + n, "open", sparse=True, fill=chunk("leg-0", n)) for n in range(3)]
    feed.apply(withdrawal("w0", "wdr-0", 1, "partially_filled", fill=chunk("leg-0")), *bad)
    result = feed.apply(withdrawal("c1", "wdr-1", 1, "open"))
    assert (result.stopped, result.quarantined["fill_collision"]) == (True, 2)
    assert [row[0] for row in road.rows(INBOX) if row[5]] == ["b2"]
    assert road.applier(0).apply_ready().finished == 1
    assert road.rows(SET_ASIDE) == [(f"b{n}", "fill_collision") for n in range(3)]


def _import(road: Road, object_id: str) -> None:
    road.execute(
        "INSERT INTO pg_withdrawals (pg_withdrawal_id, pg_version, status, amount_total_minor, remaining_minor)"
        " VALUES (%s, 1, 'open', 100000, 100000)",
        (object_id,),
    )
