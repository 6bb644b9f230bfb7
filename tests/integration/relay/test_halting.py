"""What only a person can mend stops the work, not the process; and nothing is skipped or sent twice meanwhile."""

import json

import pytest
from confluent_kafka.admin import NewTopic

from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.operations import topics
from tallyhook.settings import Settings
from tests.integration.relay.conftest import PARTITIONS, StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import OutboxWriter
from tests.integration.relay.relay_process import RelayProcess
from tests.integration.relay.waiting import eventually


def test_a_gap_stops_before_it(start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader) -> None:
    """A row that was deleted unsent is not skipped: what follows it stays, and /readyz names it."""
    relay = _send_first(start_relay, writer)
    writer.add(1, partitions=[2])
    eventually("row 10 is sent", lambda: reader.seqs()[2] == list(range(11)))
    relay.freeze()
    writer.add(3, partitions=[2])
    writer.delete(2, 12)
    relay.thaw()
    reason = relay.await_halted()
    assert "partition 2" in reason
    assert "row 12 is missing" in reason
    assert reader.seqs()[2] in (list(range(11)), list(range(12)))
    _stays_and_stops(relay)


@pytest.mark.parametrize("moment", ["while it runs", "before it starts"])
def test_an_outbox_without_the_row_sent_last_was_rewound(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, moment: str
) -> None:
    """A database that lost commits stops the relay before new rows take the numbers of sent ones."""
    relay = _send_first(start_relay, writer)
    if moment == "before it starts":
        assert relay.stop() == 0
    writer.delete(1, 9)
    if moment == "before it starts":
        relay = start_relay()
    reason = relay.await_halted()
    assert "outbox rewound: partition 1 no longer holds row 9" in reason
    _stays_and_stops(relay)
    assert reader.seqs() == {partition: list(range(10)) for partition in range(PARTITIONS)}


def test_another_row_under_a_sent_number_is_noticed_on_a_new_connection(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader
) -> None:
    """After a failover that lost a row and gave its number to another, each new connection compares the ids."""
    relay = _send_first(start_relay, writer)
    with writer.connection.transaction():
        writer.delete(3, 9)
        writer.next_seq[3] = 9
        writer.add(2, partitions=[3])
    assert writer.end_relay_sessions() > 0
    assert "partition 3 no longer holds row 9 with id" in relay.await_halted()
    assert len(reader.seqs()[3]) in (10, 11), "row 10 may go before the sessions end, row 9 never twice"
    assert reader.seqs()[3].count(9) == 1
    _stays_and_stops(relay)


def test_a_lost_progress_topic_is_not_taken_for_a_new_start(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """Without progress but with a cursor nothing is sent again from 0."""
    assert _send_first(start_relay, writer).stop() == 0
    names = TopicNames(settings.installation.topic_prefix)
    _make_anew(settings, names.relay_progress)
    _forget_topic_ids(writer, settings)
    relay = start_relay()
    reason = relay.await_halted()
    assert f"{names.relay_progress}, partition 0 is empty, but rows up to 9 were sent" in reason
    _stays_and_stops(relay)
    assert reader.seqs() == {partition: list(range(10)) for partition in range(PARTITIONS)}


def test_the_progress_can_be_restored_by_hand(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """The way out that /readyz names works: with the record written, the relay goes on after it."""
    assert _send_first(start_relay, writer).stop() == 0
    names = TopicNames(settings.installation.topic_prefix)
    _make_anew(settings, names.relay_progress)
    _forget_topic_ids(writer, settings)
    producer = kafka.producer(
        settings.kafka, linger_ms=0, delivery_timeout_seconds=20, on_fatal=lambda error: pytest.fail(error.str())
    )
    query = b"SELECT id::text FROM %s WHERE partition = %d AND seq = 9"
    for partition in range(PARTITIONS):
        table = writer.table("pg_outbox").as_bytes(writer.connection)
        row = writer.connection.execute(query % (table, partition)).fetchone()
        assert row is not None
        producer.produce(
            names.relay_progress,
            partition=partition,
            key=str(partition),
            value=json.dumps({"seq": 9, "id": row[0]}),
        )
    assert producer.flush(20) == 0
    writer.add(5)
    relay = start_relay()
    eventually("the rows after it are sent", lambda: relay.metric("tallyhook_relay_sent_total") == 20)
    assert reader.seqs() == writer.expected()


def test_a_topic_made_anew_is_refused(start_relay: StartRelay, writer: OutboxWriter, settings: Settings) -> None:
    """A topic with another id than the installed one has lost what was sent to it."""
    assert _send_first(start_relay, writer).stop() == 0
    topic = TopicNames(settings.installation.topic_prefix).effect("release_goods")
    _make_anew(settings, topic)
    relay = start_relay()
    assert f"topic {topic} is not the one that was installed" in relay.await_halted()
    _stays_and_stops(relay)


def test_an_effect_without_a_topic_is_not_skipped(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader
) -> None:
    """A row of a newer version waits, by name, until its topic is installed."""
    relay = _send_first(start_relay, writer)
    relay.freeze()
    writer.add(1, partitions=[0])
    rename = b"UPDATE %s SET topic = 'wave_goodbye' WHERE partition = 0 AND seq = 10"
    writer.connection.execute(rename % writer.table("pg_outbox").as_bytes(writer.connection))
    relay.thaw()
    reason = relay.await_halted()
    if "wave_goodbye" not in reason:
        pytest.fail(reason)
    assert reader.seqs()[0] == list(range(10))
    _stays_and_stops(relay)


def test_other_shards_than_installed_are_refused(start_relay: StartRelay, writer: OutboxWriter) -> None:
    """The number of shards is fixed by the first relay; a wrong setting ends the process with 2 and the way out."""
    first = start_relay()
    first.await_active()
    refused = {
        "this installation has 1": start_relay(TALLYHOOK_RELAY_SHARDS="2"),
        "must be below TALLYHOOK_RELAY_SHARDS=1": start_relay(TALLYHOOK_RELAY_SHARD="1"),
        "must be at most TALLYHOOK_PARTITIONS=4": start_relay(TALLYHOOK_RELAY_SHARDS="5"),
    }
    for told, relay in refused.items():
        assert relay.await_exit() == 2
        assert told in relay.log()
    assert first.active()


def _send_first(start_relay: StartRelay, writer: OutboxWriter) -> RelayProcess:
    writer.add(10)
    relay = start_relay()
    eventually("the first rows are sent", lambda: relay.metric("tallyhook_relay_sent_total") == 10 * PARTITIONS)
    return relay


def _stays_and_stops(relay: RelayProcess) -> None:
    assert relay.status("/livez") == (200, [])
    assert relay.exit_code is None
    assert relay.stop() == 0


def _make_anew(settings: Settings, topic: str) -> None:
    admin = kafka.admin(settings.kafka)
    admin.delete_topics([topic], operation_timeout=20)[topic].result(20)
    eventually("the topic is gone", lambda: topic not in admin.list_topics(timeout=10).topics)
    admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1)])[topic].result(20)
    # Creation is confirmed before it has spread.
    eventually("the new topic shows up", lambda: topic in admin.list_topics(timeout=10).topics)


def _forget_topic_ids(writer: OutboxWriter, settings: Settings) -> None:
    """As a careless repair would: the record of the topic that was lost is taken from the new one."""
    writer.connection.execute(b"DELETE FROM %s" % writer.table("installed_topics").as_bytes(writer.connection))
    topics.apply(settings)
