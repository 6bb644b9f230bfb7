"""`tallyhook sink accept-loss`: records that are gone are given up by name, never more than those."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import TopicPartition

from sinks.batch import Applier
from sinks.records import SinkRecord
from tallyhook import kafka
from tallyhook.errors import FenceLost
from tallyhook.postgres import connect
from tests.integration.operations.operated import PATIENCE_SECONDS, Operated

POSITIONS = "SELECT partition, next_offset, epoch FROM sink_offsets ORDER BY topic, partition"
LOSSES = (
    "SELECT topic, partition, epoch, from_offset, to_offset, low_offset, high_offset, actor, reason"
    " FROM accepted_losses"
)
WHY = ("--reason", "retention was wrong", "--actor", "nok")


def fill(place: Operated, topic: str, partition: int, records: int, low: int = 0) -> str:
    """A partition with so many records, of which those below `low` are deleted; gives the topic's id."""
    for number in range(records):
        place.client.produce(topic, value=b"%d" % number, partition=partition)
    assert place.client.flush(PATIENCE_SECONDS) == 0
    if low:
        client = kafka.admin(place.settings.kafka)
        for outcome in client.delete_records([TopicPartition(topic, partition, low)]).values():
            outcome.result(PATIENCE_SECONDS)
    return str(place.rows("SELECT topic_id FROM installed_topics WHERE topic = %s", topic)[0][0])


def put_position(place: Operated, topic: str, topic_id: str, partition: int, next_offset: int) -> None:
    """What a sink that is gone has left."""
    place.connection.execute(
        "INSERT INTO sink_offsets (topic, topic_id, partition, next_offset, epoch, owner_pid)"
        " VALUES (%s, %s, %s, %s, 7, 1)",
        (topic, topic_id, partition, next_offset),
    )


@pytest.fixture
def lost(still: Operated) -> Operated:
    """Partition 2 of `state-changes` was applied up to 12 and holds 20 to 30."""
    topic = still.names.state_changes
    put_position(still, topic, fill(still, topic, 2, 30, low=20), 2, 12)
    return still


def accept(place: Operated, partition: int, to_offset: int, *more: str) -> tuple[str, ...]:
    """The arguments of the command."""
    return ("sink", "accept-loss", "--partition", str(partition), "--to-offset", str(to_offset), *WHY, *more)


def test_a_loss_is_accepted_once_and_noted(lost: Operated) -> None:
    """The position moves under a new epoch; who gave up what and why is in the table, the log and the answer."""
    told = lost.json(*accept(lost, 2, 20, "--dry-run"))
    assert (told["dry_run"], told["accepted_at"], told["records"]) == (True, None, 8)
    assert lost.rows(POSITIONS) == [(2, 12, 7)]
    assert lost.rows(LOSSES) == []

    done = lost.command(*accept(lost, 2, 20, "--json"))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    topic = lost.names.state_changes
    assert (told["topic"], told["partition"], told["from_offset"], told["to_offset"]) == (topic, 2, 12, 20)
    assert (told["low_offset"], told["high_offset"], told["records"]) == (20, 30, 8)
    assert (told["actor"], told["reason"], told["others"]) == ("nok", "retention was wrong", [])
    logged = json.loads(next(line for line in done.stderr.splitlines() if "given up" in line))
    assert (logged["from_offset"], logged["to_offset"], logged["records"], logged["actor"]) == (12, 20, 8, "nok")
    assert lost.rows(POSITIONS) == [(2, 20, 8)]
    assert lost.rows(LOSSES) == [(topic, 2, 8, 12, 20, 20, 30, "nok", "retention was wrong")]

    again = lost.command(*accept(lost, 2, 20))
    assert again.returncode == 1
    assert "nothing is lost" in again.stderr
    assert lost.rows(POSITIONS) == [(2, 20, 8)]


def test_people_are_told_what_comes_next(lost: Operated) -> None:
    """What was given up, who decided it, and the commands that bring it back."""
    done = lost.command(*accept(lost, 2, 20))
    assert done.returncode == 0, done.stderr
    assert "given up: records 12 to 19 (8) of partition 2" in done.stdout
    assert "nok, retention was wrong" in done.stdout
    assert "tallyhook gaps" in done.stdout
    assert "tallyhook backfill --gaps" in done.stdout


@pytest.mark.parametrize(
    ("partition", "to_offset", "told"),
    [
        (2, 21, "give --to-offset 20, not 21"),
        (2, 19, "give --to-offset 20, not 19"),
        (2, 30, "give --to-offset 20, not 30"),
        (1, 0, "nothing is lost"),
    ],
)
def test_no_more_is_given_up_than_is_gone(lost: Operated, partition: int, to_offset: int, told: str) -> None:
    """Another offset than the beginning of what is there, or a partition that lost nothing: exit code 1, no change."""
    refused = lost.command(*accept(lost, partition, to_offset))
    assert refused.returncode == 1
    assert told in refused.stderr
    assert lost.rows(POSITIONS) == [(2, 12, 7)]
    assert lost.rows(LOSSES) == []


def test_wrong_usage_changes_nothing(lost: Operated) -> None:
    """A partition that does not exist, an empty reason, no reason: exit code 2."""
    given = ("sink", "accept-loss", "--partition", "2", "--to-offset", "20")
    assert lost.command(*accept(lost, 4, 20)).returncode == 2
    assert lost.command(*given, "--reason", "  ").returncode == 2
    assert lost.command(*given).returncode == 2
    assert lost.rows(POSITIONS) == [(2, 12, 7)]


def test_an_end_that_the_broker_lost(still: Operated) -> None:
    """Applied up to 40 of a topic that ends at 30: going on is possible anywhere within what is there."""
    topic = still.names.state_changes
    put_position(still, topic, fill(still, topic, 0, 30, low=5), 0, 40)
    for outside in (4, 31):
        refused = still.command(*accept(still, 0, outside))
        assert refused.returncode == 1
        assert "--to-offset 5 goes over everything" in refused.stderr
    told = still.json(*accept(still, 0, 5))
    assert (told["from_offset"], told["to_offset"], told["records"]) == (40, 5, 0)
    assert still.rows(POSITIONS) == [(0, 5, 8)]


def test_a_partition_that_was_never_applied(still: Operated) -> None:
    """It has no position yet, and its beginning is gone: the first one is made."""
    fill(still, still.names.state_changes, 3, 9, low=5)
    assert still.json(*accept(still, 3, 5))["records"] == 5
    assert still.rows(POSITIONS) == [(3, 5, 1)]


def test_dead_letters_and_the_other_lost_partitions(still: Operated) -> None:
    """Their positions are another topic's; what else is lost is named with its command."""
    topic = still.names.dead_letters
    topic_id = fill(still, topic, 0, 6, low=4)
    fill(still, topic, 1, 6, low=5)
    put_position(still, topic, topic_id, 0, 1)
    put_position(still, topic, topic_id, 1, 2)
    done = still.command(*accept(still, 0, 4, "--topic", "dead-letters"))
    assert done.returncode == 0, done.stderr
    assert "also lost: records 2 to 4 (3) of partition 1" in done.stdout
    assert "accept-loss --partition 1 --to-offset 5 --topic dead-letters --reason 'retention was wrong'" in done.stdout
    assert still.rows(POSITIONS) == [(0, 4, 8), (1, 2, 7)]


def test_a_topic_that_was_made_anew_is_refused(still: Operated) -> None:
    """Its offsets do not follow those that were applied."""
    topic = still.names.state_changes
    fill(still, topic, 2, 30, low=20)
    put_position(still, topic, "another-id", 2, 12)
    refused = still.command(*accept(still, 2, 20))
    assert refused.returncode == 1
    assert "was deleted and made anew" in refused.stderr
    assert still.rows(POSITIONS) == [(2, 12, 7)]


def test_a_worker_that_holds_the_partition_writes_nothing_more(lost: Operated) -> None:
    """It is alive and rests: it is fenced by the acceptance, and its next batch is refused whole."""
    own = lost.settings
    topic_id = lost.rows("SELECT topic_id FROM sink_offsets")[0][0]
    with connect(own.database, "sink") as session:
        owner = Applier(session, own.installation, topic_id=topic_id)
        owner.claim([2])
        lost.json(*accept(lost, 2, 20))
        with pytest.raises(FenceLost):
            owner.apply([SinkRecord(2, 12, owner.epoch(2), b"{}", [])])
    assert lost.rows(POSITIONS) == [(2, 20, 9)]


@contextmanager
def moving(place: Operated) -> Iterator[None]:
    """A sink that applies one record after the other all the while."""
    ended = threading.Event()
    with connect(place.settings.database, "sink") as session:
        session.execute(
            f"UPDATE {place.settings.installation.schema_name}.sink_offsets SET owner_pid = pg_backend_pid()".encode()
        )

        def work() -> None:
            while not ended.wait(0.05):
                session.execute(
                    f"UPDATE {place.settings.installation.schema_name}.sink_offsets"
                    " SET next_offset = next_offset + 1".encode()
                )

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(PATIENCE_SECONDS)


def test_a_sink_that_still_applies_what_it_had_fetched_is_left_alone(still: Operated) -> None:
    """The records went after it had fetched them: they are not lost, and giving them up would lose them."""
    topic = still.names.state_changes
    # At its pace it would take minutes to come to what is there.
    put_position(still, topic, fill(still, topic, 2, 6000, low=5990), 2, 12)
    with moving(still):
        refused = still.command(*accept(still, 2, 5990))
    assert refused.returncode == 1
    assert "is being applied by a sink" in refused.stderr
    assert still.rows(LOSSES) == []
    assert still.rows("SELECT epoch FROM sink_offsets") == [(7,)]


def test_a_position_that_is_locked_is_not_waited_for_without_end(lost: Operated) -> None:
    """Exit code 1 after some seconds, with what to look at."""
    with connect(lost.settings.database, "test") as other, other.transaction():
        other.execute(f"SELECT FROM {lost.settings.installation.schema_name}.sink_offsets FOR UPDATE".encode())
        refused = lost.command(*accept(lost, 2, 20))
    assert refused.returncode == 1
    assert "pg_locks" in refused.stderr
    assert lost.rows(POSITIONS) == [(2, 12, 7)]
