"""A worker that is frozen, in a COPY or between batches, and one whose claim has grown old: none changes anything."""

import signal
from typing import Any

import pytest

from tests.integration.sinks.balances import applied, lives, sound
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import Delivery, deposit
from tests.integration.sinks.running import Running, until

DEPOSITS = 100
FILLER = "x" * 60_000
"""So much in each event that a batch of them is six megabytes: far more than its server takes at once."""

TABLES = {"the inbox": "pg_webhook_inbox", "the outbox": "pg_outbox"}


def settled(road: Road, first: int, **members: Any) -> list[Delivery]:
    """An event for each of the next deposits, with their correlations."""
    keys = [f"dep-{number}" for number in range(first, first + DEPOSITS)]
    road.correlate(*keys)
    return [deposit(f"{key}-1", key, 1, "settled", **members) for key in keys]


def wait_within_copy(road: Road, table: str) -> None:
    """From now on a COPY into the table waits in its second row for as long as the test holds the lock."""
    road.execute(
        "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM pg_advisory_xact_lock_shared(TG_RELID::bigint); RETURN NEW; END $$"
    )
    column = "arrival_seq" if table == "pg_webhook_inbox" else "seq"
    road.execute(
        f"CREATE TRIGGER gate BEFORE INSERT ON {table} FOR EACH ROW WHEN (NEW.{column} > 0)"
        " EXECUTE FUNCTION wait_at_gate()".encode()
    )
    road.execute("SELECT pg_advisory_lock(%s::regclass::oid::bigint)", (table,))


def copying(road: Road) -> list[int]:
    """The backends that wait in a COPY of this installation's."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'tallyhook-sink' AND wait_event = 'advisory'"
        " AND query LIKE 'COPY%%' || %s || '%%'"
    )
    return [pid for (pid,) in road.rows(query, (road.installation.schema_name,))]


@pytest.mark.parametrize("where", sorted(TABLES))
def test_stopped_in_the_middle_of_a_copy(road: Road, stage: Running, where: str) -> None:
    """Its transaction is ended and counts for nothing; continued, it says so once, joins anew and serves again."""
    older = stage.worker(TALLYHOOK_SINK_CLAIM_WAIT_SECONDS="1")
    until(lambda: not older.reasons(), stage.workers)
    wait_within_copy(road, TABLES[where])
    stage.publish(*settled(road, 0, filler=FILLER), partition=2)
    (backend,) = until_copying(road, stage)
    older.process.send_signal(signal.SIGSTOP)

    younger = stage.worker(TALLYHOOK_SINK_CLAIM_WAIT_SECONDS="1")
    until(lambda: copying(road) not in ([], [backend]), stage.workers)
    assert road.rows("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (backend,)) == []
    assert applied(road) == 0
    assert road.one("SELECT pg_advisory_unlock(%s::regclass::oid::bigint)", (TABLES[where],)) is True
    until(lambda: applied(road) == DEPOSITS, stage.workers)
    sound(road, DEPOSITS)
    before = road.rows("SELECT * FROM pg_outbox ORDER BY partition, seq")

    older.process.send_signal(signal.SIGCONT)
    until(lambda: bool(older.told()), stage.workers)
    until(lambda: not older.reasons() and not younger.reasons(), stage.workers)
    assert applied(road) == DEPOSITS
    assert road.rows("SELECT * FROM pg_outbox ORDER BY partition, seq") == before
    (line,) = older.told()
    assert (line["level"], line["event"]) == ("warning", "another worker took over")
    assert 2 in line["partitions"]
    assert line["epochs"]["2"].startswith("1 -> ")
    assert older.metric("tallyhook_sink_fence_lost_total") == 1

    # The younger ends, so that what comes now is the older one's to apply.
    assert younger.end() == 0
    stage.publish(*settled(road, DEPOSITS), partition=2)
    until(lambda: applied(road) == 2 * DEPOSITS, stage.workers)
    until(lambda: not older.reasons(), stage.workers)
    sound(road, 2 * DEPOSITS)
    assert older.process.poll() is None
    assert older.end() == 0


def until_copying(road: Road, stage: Running) -> list[int]:
    """Waits until a COPY waits; its backend."""
    until(lambda: bool(copying(road)), stage.workers)
    return copying(road)


def test_an_epoch_that_rose_is_a_lost_fence(road: Road, stage: Running) -> None:
    """The next batch is refused whole and told in one line; the worker joins anew and applies everything once."""
    worker = stage.worker()
    stage.publish(*settled(road, 0))
    until(lambda: applied(road) == DEPOSITS, stage.workers)
    road.execute("UPDATE sink_offsets SET epoch = epoch + 1 WHERE topic = %s", (stage.names.state_changes,))
    stage.publish(*settled(road, DEPOSITS))
    until(lambda: applied(road) == 2 * DEPOSITS, stage.workers)
    until(lambda: not worker.reasons(), stage.workers)
    assert [line["event"] for line in worker.told()] == ["fence lost"]
    assert "belongs to another worker" in worker.told()[0]["reason"]
    assert worker.metric("tallyhook_sink_fence_lost_total") == 1
    sound(road, 2 * DEPOSITS)


def test_a_frozen_worker_wakes_up_and_writes_nothing(road: Road, stage: Running) -> None:
    """Another one takes its partitions over; when it goes on, its batch is refused and it joins anew."""
    frozen = stage.worker()
    stage.publish(*lives(road, 20))
    until(lambda: applied(road) == 40, stage.workers)
    frozen.process.send_signal(signal.SIGSTOP)
    stage.worker(TALLYHOOK_SINK_CLAIM_WAIT_SECONDS="1")
    stage.publish(*lives(road, 100, 20))
    until(lambda: applied(road) == 240, stage.workers)
    frozen.process.send_signal(signal.SIGCONT)
    stage.publish(*lives(road, 100, 120))
    until(lambda: applied(road) == 440, stage.workers)
    until(lambda: not frozen.reasons(), stage.workers)
    sound(road, 220)
