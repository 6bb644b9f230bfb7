"""Two partitions meet on one chunk or transaction at the same moment: one is kept, the other refuses its event.

Facts are keyed by what the gateway names them, not by the object that orders a partition, so two workers may write the
same one. Whatever the interleaving, what is left is what one after the other would have left.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from sinks.plan import BatchResult, Plan
from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import Delivery, chunk, movement, taken_back, withdrawal

PATIENCE_SECONDS = 30.0
SET_ASIDE = "SELECT event_id, reason FROM quarantined_events ORDER BY id"


def filled(event_id: str, object_id: str, leg_ref: str, amount_minor: int = 30_000) -> Delivery:
    """A chunk."""
    return withdrawal(event_id, object_id, 3, "partially_filled", fill=chunk(leg_ref, amount_minor))


def reversed_(event_id: str, object_id: str, leg_ref: str, reverses: str = "", reversing: str = "") -> Delivery:
    """A reversal of a chunk; the two transactions are those of the leg unless given."""
    reverses, reversing = reverses or f"btxn-{leg_ref}", reversing or f"rtxn-{leg_ref}"
    return withdrawal(
        event_id,
        object_id,
        4,
        "partially_filled",
        fill=chunk(leg_ref, balance_transaction_id=reverses),
        reversal=taken_back(leg_ref, reverses_balance_transaction_id=reverses, balance_transaction_id=reversing),
    )


MEETINGS = {
    "two chunks": (filled("one", "wdr-1", "leg"), filled("two", "wdr-2", "leg"), "fill_collision"),
    "a chunk and a reversal": (filled("one", "wdr-1", "leg"), reversed_("two", "wdr-2", "leg"), "reversal_collision"),
    "a reversal and a chunk": (reversed_("one", "wdr-1", "leg"), filled("two", "wdr-2", "leg"), "fill_collision"),
    "two reversals of a leg": (
        reversed_("one", "wdr-1", "leg"),
        reversed_("two", "wdr-2", "leg", "b", "r"),
        "reversal_collision",
    ),
    "two that reverse one transaction": (
        reversed_("one", "wdr-1", "leg-1", "b"),
        reversed_("two", "wdr-2", "leg-2", "b"),
        "reversal_collision",
    ),
    "two by one transaction": (
        reversed_("one", "wdr-1", "leg-1", reversing="r"),
        reversed_("two", "wdr-2", "leg-2", reversing="r"),
        "reversal_collision",
    ),
    "one reverses what the other is reversed by": (
        reversed_("one", "wdr-1", "leg-1", reversing="x"),
        reversed_("two", "wdr-2", "leg-2", reverses="x"),
        "reversal_collision",
    ),
    "one is reversed by what the other reverses": (
        reversed_("one", "wdr-1", "leg-1", reverses="x"),
        reversed_("two", "wdr-2", "leg-2", reversing="x"),
        "reversal_collision",
    ),
}


@dataclass
class Held:
    """An applier in a thread of its own that stops at a place until it is let go."""

    feed: Feed
    reached: threading.Event = field(default_factory=threading.Event)
    may_go: threading.Event = field(default_factory=threading.Event)
    results: list[BatchResult] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """The backend of its session."""
        return self.feed.applier._statements.connection.info.backend_pid

    def hold_before_commit(self) -> None:
        """It stops when everything is written and nothing is committed."""
        commit = self.feed.applier._statements.commit

        def held() -> None:
            self._wait()
            commit()

        self.feed.applier._statements.commit = held  # type: ignore[method-assign]

    def hold_before_write(self) -> None:
        """It stops when everything is decided and nothing is written."""
        write = self.feed.applier._statements.write

        def held(topic: str, plan: Plan) -> None:
            self._wait()
            write(topic, plan)

        self.feed.applier._statements.write = held  # type: ignore[method-assign]

    @contextmanager
    def applying(self, event: Delivery) -> Iterator[None]:
        """Applies the event in the background, and waits for its end."""
        thread = threading.Thread(target=lambda: self.results.append(self.feed.apply(event)))
        thread.start()
        try:
            yield
        finally:
            self.may_go.set()
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()

    def _wait(self) -> None:
        self.reached.set()
        assert self.may_go.wait(PATIENCE_SECONDS)


@pytest.fixture
def pair(road: Road) -> tuple[Held, Held]:
    """The owners of two partitions, each with a withdrawal that is there already."""
    held = []
    for partition in (0, 1):
        feed = Feed(road.applier(partition), partition, next_source=100 * partition)
        feed.apply(withdrawal(f"created-{partition}", f"wdr-{partition + 1}", 1, "open"))
        held.append(Held(feed))
    return held[0], held[1]


def what_is_left(road: Road, second: BatchResult, reason: str) -> None:
    """The first event is kept whole; the second is set aside whole, for the reason that it would have had later."""
    assert second.repeated == {"conflict": 1}
    assert road.rows(SET_ASIDE) == [("two", reason)]
    owners = "SELECT pg_withdrawal_id FROM pg_withdrawal_fills UNION ALL SELECT pg_withdrawal_id FROM {}"
    facts = road.rows(owners.format("pg_withdrawal_fill_reversals").encode())
    assert facts == [("wdr-1",)]
    assert road.rows("SELECT pg_withdrawal_id, pg_version > 1 FROM pg_withdrawals ORDER BY 1") == [
        ("wdr-1", True),
        ("wdr-2", False),
    ]
    assert road.one("SELECT count(*) FROM pg_outbox WHERE causation_id = 'two'") == 0


@pytest.mark.parametrize("meeting", MEETINGS)
def test_the_second_runs_into_the_first(road: Road, pair: tuple[Held, Held], meeting: str) -> None:
    """The first has written and not committed; the second waits for it and is decided anew."""
    (first, second), (one, two, reason) = pair, MEETINGS[meeting]
    first.hold_before_commit()
    with first.applying(one):
        assert first.reached.wait(PATIENCE_SECONDS)
        with second.applying(two):
            while not road.one("SELECT pg_blocking_pids(%s)", (second.pid,)):
                assert not second.results
            first.may_go.set()
    what_is_left(road, second.results[0], reason)


@pytest.mark.parametrize("meeting", MEETINGS)
def test_the_first_commits_after_the_second_has_looked(road: Road, pair: tuple[Held, Held], meeting: str) -> None:
    """The second decided on what it saw before; what it finds when it writes makes it decide anew."""
    (first, second), (one, two, reason) = pair, MEETINGS[meeting]
    second.hold_before_write()
    with second.applying(two):
        assert second.reached.wait(PATIENCE_SECONDS)
        first.feed.apply(one)
        second.may_go.set()
    what_is_left(road, second.results[0], reason)


@pytest.mark.parametrize("meeting", MEETINGS)
def test_the_first_gives_up(road: Road, pair: tuple[Held, Held], meeting: str) -> None:
    """The second waits for a transaction that is rolled back, and is kept as if the other had never been."""
    (first, second), (one, two, _) = pair, MEETINGS[meeting]

    def give_up() -> None:
        first._wait()
        raise RuntimeError("the first gives up")

    first.feed.applier._statements.commit = give_up  # type: ignore[method-assign]
    failures: list[BaseException] = []

    def apply() -> None:
        with pytest.raises(RuntimeError) as failure:
            first.feed.apply(one)
        failures.append(failure.value)

    thread = threading.Thread(target=apply)
    thread.start()
    assert first.reached.wait(PATIENCE_SECONDS)
    with second.applying(two):
        while not road.one("SELECT pg_blocking_pids(%s)", (second.pid,)):
            assert not second.results
        first.may_go.set()
        thread.join(PATIENCE_SECONDS)
    assert len(failures) == 1
    assert second.results[0].repeated == {}
    assert road.rows(SET_ASIDE) == []
    assert road.rows("SELECT pg_withdrawal_id, pg_version > 1 FROM pg_withdrawals ORDER BY 1") == [
        ("wdr-1", False),
        ("wdr-2", True),
    ]


def test_a_reversal_without_a_chunk_leaves_no_chunk(road: Road, pair: tuple[Held, Held]) -> None:
    """The leg that it kept for the moment is given back, and the chunk that comes later is kept and marked."""
    first, _ = pair
    first.feed.apply(reversed_("r", "wdr-1", "leg"))
    assert road.rows("SELECT * FROM pg_withdrawal_fills") == []
    first.feed.apply(filled("f", "wdr-1", "leg"))
    assert road.rows("SELECT leg_ref, reversed_at IS NOT NULL FROM pg_withdrawal_fills") == [("leg", True)]


def test_many_meet_at_once(road: Road) -> None:
    """Two owners run freely over the same legs in opposite order: no deadlock, and each leg belongs to one of them."""
    legs = [f"leg-{number:02}" for number in range(30)]
    feeds = [Feed(road.applier(partition), partition, next_source=1000 * partition) for partition in (0, 1)]
    results: list[BatchResult] = []

    def run(feed: Feed) -> None:
        mine = legs if feed.partition == 0 else legs[::-1]
        name = f"wdr-{feed.partition}"
        for start in range(0, len(mine), 6):
            events = []
            for number, leg_ref in enumerate(mine[start : start + 6]):
                make = filled if (number + feed.partition) % 2 else reversed_
                events.append(make(f"{name}-{leg_ref}", name, leg_ref))
            results.append(feed.apply(*events))

    threads = [threading.Thread(target=run, args=(feed,)) for feed in feeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert len(results) == 10
    owners = road.rows(
        "SELECT leg_ref, count(DISTINCT pg_withdrawal_id) FROM (SELECT leg_ref, pg_withdrawal_id FROM"
        " pg_withdrawal_fills UNION ALL SELECT leg_ref, pg_withdrawal_id FROM pg_withdrawal_fill_reversals) f"
        " GROUP BY leg_ref ORDER BY leg_ref"
    )
    assert owners == [(leg_ref, 1) for leg_ref in legs]
    assert road.one("SELECT count(*) FROM pg_webhook_inbox") == len(legs)
    reasons = {reason for _, reason in road.rows(SET_ASIDE)}
    assert (
        road.one("SELECT count(*) FROM quarantined_events"),
        reasons - {"fill_collision", "reversal_collision"},
    ) == (
        len(legs),
        set(),
    )


def test_one_balance_transaction_on_two_partitions(road: Road, pair: tuple[Held, Held]) -> None:
    """A foreign writer put the same id into two partitions: same content is known, other content is set aside."""
    first, second = pair
    second.hold_before_write()
    with second.applying(movement("b2", "btxn-1", amount_minor=1)):
        assert second.reached.wait(PATIENCE_SECONDS)
        first.feed.apply(movement("b1", "btxn-1"))
        second.may_go.set()
    second.may_go.set()
    second.feed.apply(movement("b3", "btxn-1"))
    assert road.rows(SET_ASIDE) == [("b2", "transaction_collision")]
    assert road.rows(
        "SELECT event_id, verdict, reason FROM pg_webhook_inbox WHERE object_id = 'btxn-1' ORDER BY 1"
    ) == [
        ("b1", "immutable", None),
        ("b3", "immutable", "already_recorded"),
    ]
    assert road.one("SELECT amount_minor FROM pg_balance_txns") == 5_000
