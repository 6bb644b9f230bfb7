"""The fence: one owner a partition, whoever sleeps, dies or claims."""

import threading

import psycopg
import pytest

from sinks.batch import Applier
from sinks.fence import TopicRange
from sinks.records import SinkRecord
from tallyhook.errors import DatabaseUnavailable, FenceLost, PositionLost, TopicMismatch
from tallyhook.postgres import connect
from tallyhook.settings import SinkSettings
from tests.integration.sinks.conftest import Feed, Road
from tests.integration.sinks.deliveries import deposit

HURRIED = SinkSettings(claim_wait_seconds=0.5, quarantine_limit=1000)
TABLES = (
    "pg_webhook_inbox",
    "redeliveries",
    "pg_deposits",
    "pg_deposit_overpayment_flags",
    "pg_user_balances",
    "pg_user_balance_entries",
    "pg_outbox",
    "quarantined_events",
)


def rows_in_all_tables(road: Road) -> int:
    """How many rows the sink has written anywhere."""
    return sum(road.one(b"SELECT count(*) FROM " + table.encode()) for table in TABLES)


def test_an_older_owner_writes_nothing(road: Road) -> None:
    """After another claim the older owner's batch is refused whole; the new owner goes on where it stood."""
    road.correlate("dep-1")
    older = Feed(road.applier(0))
    older.apply(deposit("a", "dep-1", 1, "open"))
    newer = Feed(road.applier(0), next_offset=1, next_source=1)
    before = rows_in_all_tables(road)
    with pytest.raises(FenceLost, match="partition 0"):
        older.apply(deposit("b", "dep-1", 2, "settled"))
    assert rows_in_all_tables(road) == before
    newer.apply(deposit("b", "dep-1", 2, "settled"))
    assert road.one("SELECT count(*) FROM pg_user_balance_entries") == 1


def test_one_lost_partition_refuses_the_whole_batch(road: Road) -> None:
    """A batch over two partitions of which one was lost writes nothing for the other either."""
    older = road.applier(0, 1)
    one, other = Feed(older, 0), Feed(older, 1)
    road.applier(1)
    with pytest.raises(FenceLost, match="partition 1"):
        older.apply(one.records(deposit("a", "dep-1", 1, "open")) + other.records(deposit("b", "dep-2", 1, "open")))
    assert rows_in_all_tables(road) == 0


def test_a_position_that_moved_is_a_lost_fence(road: Road) -> None:
    """The epoch alone is not enough: somebody set the position back, and the worker claims anew."""
    feed = Feed(road.applier(0))
    feed.apply(deposit("a", "dep-1", 1, "open"))
    road.execute("UPDATE sink_offsets SET next_offset = 0")
    with pytest.raises(FenceLost):
        feed.apply(deposit("b", "dep-1", 2, "open"))


def test_records_of_an_earlier_claim_are_refused(road: Road) -> None:
    """A record carries the claim under which it was read; after the partition came back it is another one."""
    applier = road.applier(0)
    record = Feed(applier).records(deposit("a", "dep-1", 1, "open"))[0]
    applier.claim([0])
    with pytest.raises(FenceLost, match="read under claim 1"):
        applier.apply([record])


def test_after_an_unknown_commit_the_claim_tells_the_truth(road: Road) -> None:
    """The connection dies in COMMIT, once before and once after it counted: nothing is lost, nothing is done twice."""
    road.correlate("dep-1")
    events = [deposit("a", "dep-1", 1, "open"), deposit("b", "dep-1", 2, "settled")]
    for dies_first in (True, False):
        applier = road.applier(0)
        position = applier.fence.positions[0].next_offset
        feed = Feed(applier, next_offset=position, next_source=position)
        end_session_at_commit(road, applier, dies_first=dies_first)
        with pytest.raises(psycopg.OperationalError):
            feed.apply(events[0])
    again = Feed(road.applier(0), next_offset=1, next_source=1)
    assert again.applier.fence.positions[0].next_offset == 1
    again.apply(events[1])
    assert road.rows("SELECT event_id, arrival_seq FROM pg_webhook_inbox ORDER BY 2") == [("a", 0), ("b", 1)]
    assert road.rows("SELECT seq, causation_id FROM pg_outbox ORDER BY 1") == [(0, "a"), (1, "b"), (2, "b")]


def end_session_at_commit(road: Road, applier: Applier, *, dies_first: bool) -> None:
    """The next COMMIT of the applier fails: its session is ended just before it, or just after it counted."""
    statements = applier._statements
    commit, pid = statements.commit, statements.connection.info.backend_pid

    def end() -> None:
        road.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))

    def commit_once() -> None:
        if dies_first:
            end()
        commit()
        end()
        statements.connection.execute("SELECT 1")

    statements.commit = commit_once  # type: ignore[method-assign]


def test_a_frozen_owner_is_ended_by_the_claimer(road: Road) -> None:
    """An owner that sleeps with the row locked is ended after the wait, and its transaction never counts."""
    frozen = road.applier(0)
    frozen._statements.begin_and_load(frozen.fence.topic, [], [], [0], 1)
    claimer = road.applier(0, settings=HURRIED)
    assert claimer.epoch(0) == 2
    with pytest.raises(psycopg.OperationalError):
        frozen._statements.commit()


def test_only_a_sink_of_this_installation_is_ended(road: Road) -> None:
    """A session that is no sink's may hold the row: it is left alone, and the claim says what to look for."""
    road.applier(0)
    stranger = connect(road.database, "sink")
    road.opened.append(stranger)
    with stranger.transaction():
        stranger.execute(f"SELECT FROM {road.installation.schema_name}.sink_offsets FOR UPDATE".encode())
        waiting = road.applier(settings=HURRIED, claimed=False)
        with pytest.raises(DatabaseUnavailable, match="pg_locks"):
            waiting.claim([0])
        assert stranger.execute("SELECT 1").fetchone() == (1,)


def test_a_process_id_that_was_given_anew_is_left_alone(road: Road) -> None:
    """The recorded owner's number may be another sink's by now: one that holds nothing of this table is not ended."""
    road.applier(0)
    other = connect(road.database, "sink")
    road.opened.append(other)
    road.execute("UPDATE sink_offsets SET owner_pid = %s", (other.info.backend_pid,))
    waiting = road.applier(settings=HURRIED, claimed=False)
    with road.connection.transaction():
        road.execute("SELECT FROM sink_offsets FOR UPDATE")
        with pytest.raises(DatabaseUnavailable):
            waiting.claim([0])
    assert other.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(("low", "high", "told"), [(200, 500, "120 to 199 .80."), (0, 100, "lost 20 records or more")])
def test_a_position_out_of_range_is_told_with_the_way_out(road: Road, low: int, high: int, told: str) -> None:
    """It is not claimed: neither epoch nor position moves; once the position was moved it goes on."""
    road.applier(0)
    road.execute("UPDATE sink_offsets SET next_offset = 120")
    late = road.applier(claimed=False)
    with pytest.raises(PositionLost, match=told) as refused:
        late.claim([0], {0: TopicRange(low, high)})
    assert f"`tallyhook sink accept-loss --partition 0 --to-offset {low} --reason" in str(refused.value)
    assert road.rows("SELECT epoch, next_offset FROM sink_offsets") == [(1, 120)]
    road.execute("UPDATE sink_offsets SET next_offset = %s", (min(max(120, low), high),))
    late.claim([0], {0: TopicRange(low, high)})
    assert late.epoch(0) == 2


def test_a_fresh_position_on_a_topic_that_lost_its_beginning_is_a_loss(road: Road) -> None:
    """Where nothing was ever applied, records that are gone were never seen: that is not passed over."""
    late = road.applier(claimed=False)
    with pytest.raises(PositionLost, match=r"begins at 5: records 0 to 4 \(5\) are gone"):
        late.claim([0], {0: TopicRange(5, 9)})
    assert road.rows("SELECT * FROM sink_offsets") == []


def test_a_topic_made_anew_is_refused(road: Road) -> None:
    """The stored position belongs to a topic of the same name that is gone."""
    road.applier(0)
    road.execute("UPDATE sink_offsets SET topic_id = 'another'")
    with pytest.raises(TopicMismatch, match="deleted and made anew"):
        road.applier(0)


def test_two_workers_and_shared_users_end_in_exact_sums(road: Road) -> None:
    """The same users in many partitions, two workers at once: no batch is lost, and the sums are exact."""
    users, batches, each = 5, 12, 20
    ids = [f"dep-{p}-{n}" for p in (0, 1) for n in range(batches * each)]
    for number, key in enumerate(ids):
        road.correlate(key, user=f"usr-{number % users}")
    failures: list[Exception] = []

    def work(partition: int) -> None:
        try:
            feed = Feed(road.applier(partition), partition)
            for batch in range(batches):
                keys = [f"dep-{partition}-{batch * each + n}" for n in range(each)]
                # Each worker meets the users in another order.
                keys = keys if partition == 0 else keys[::-1]
                feed.apply(*(deposit(f"evt-{key}", key, 1, "settled", amount_minor=100) for key in keys))
        except Exception as failure:  # noqa: BLE001  the test shows whatever a worker met
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(partition,)) for partition in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert road.rows("SELECT user_id, balance_minor FROM pg_user_balances ORDER BY 1") == [
        (f"usr-{number}", 2 * batches * each // users * 100) for number in range(users)
    ]
    told = road.rows(
        "SELECT payload ->> 'user_id', (payload ->> 'balance_after_minor')::bigint FROM pg_outbox"
        " WHERE type = 'balance_entry' ORDER BY 1, 2"
    )
    assert told == [(f"usr-{u}", 100 * (n + 1)) for u in range(users) for n in range(2 * batches * each // users)]


def test_an_unclaimed_partition_is_refused(road: Road) -> None:
    """A record of a partition that nobody claimed here is not applied."""
    applier = road.applier(0)
    with pytest.raises(FenceLost):
        applier.apply([SinkRecord(3, 0, 1, b"{}", [])])


def test_a_database_that_stands_behind_is_noticed_without_a_record(road: Road) -> None:
    """Lower position, lower epoch or no row at all: a database that lost commits. A partition that another worker
    claimed is no such thing, and what this worker has committed least of all."""
    road.correlate("dep-1")
    applier = road.applier(0)
    Feed(applier).apply(deposit("a", "dep-1", 1, "open"), deposit("b", "dep-1", 2, "settled"))
    applier.fence.look_back(0)
    road.execute("UPDATE sink_offsets SET next_offset = 1")
    applier.fence.look_back(1)  # too soon after the look before
    with pytest.raises(FenceLost, match=r"lost commits: partition 0 .* up to 2 under claim 1, and it has 1 under"):
        applier.fence.look_back(10)
    road.execute("UPDATE sink_offsets SET next_offset = 2, epoch = 0")
    with pytest.raises(FenceLost, match="lost commits"):
        applier.fence.look_back(20)
    road.execute("UPDATE sink_offsets SET next_offset = 1, epoch = 2")
    applier.fence.look_back(30)
    road.execute("DELETE FROM sink_offsets")
    with pytest.raises(FenceLost, match="it has 0 under claim 0"):
        applier.fence.look_back(40)
