"""Rows become effects: each once, in order, with what downstream services need."""

import json
from datetime import datetime, timedelta
from functools import partial

import psutil
from confluent_kafka import Message

from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.settings import Settings
from tests.integration.relay.conftest import StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import Load, OutboxWriter, text_of
from tests.integration.relay.relay_process import RelayProcess
from tests.integration.relay.waiting import eventually

MEBIBYTE = 1 << 20


def test_each_row_is_one_effect_in_order(start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader) -> None:
    """Rows from before and after the start are sent once each, in seq order, and a stop gives the shard back."""
    writer.add(500)
    relay = start_relay()
    eventually("the first rows are sent", lambda: relay.metric("tallyhook_relay_sent_total") == 2000)
    writer.add(250, notify=True)
    eventually("the later rows are sent", lambda: relay.metric("tallyhook_relay_sent_total") == 3000)
    eventually("the backlog is 0", lambda: relay.metric("tallyhook_relay_backlog_rows") == 0)
    assert relay.status("/readyz") == (200, [])
    assert relay.status("/livez") == (200, [])
    assert relay.metric("tallyhook_post_to_effect_seconds_count") == 3000
    assert relay.stop() == 0
    assert reader.seqs() == writer.expected()
    assert writer.cursors() == dict.fromkeys(range(4), (749, None))


def test_an_effect_carries_key_payload_and_headers(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """The key is the object, the value the payload with every digit, the headers are CloudEvents'."""
    writer.add(2, partitions=[3])
    relay = start_relay()
    eventually("both rows are sent", lambda: relay.metric("tallyhook_relay_sent_total") == 2)
    names = TopicNames(settings.installation.topic_prefix)
    found = {effect.seq: effect for effect in reader.committed()}
    first = found[0]
    assert (first.topic, first.partition, first.key) == (names.effect("release_goods"), 3, "dep_3_0")
    assert json.loads(first.value) == {"order_id": "สั่ง-0", "received": 12345678901234567, "filler": ""}
    assert b'": ' not in first.value
    at = datetime.fromisoformat(first.headers.pop("ce_time"))
    assert at.utcoffset() == timedelta(0)
    assert first.headers == {
        "ce_specversion": "1.0",
        "ce_id": "deposit:3:0",
        "ce_type": "release_goods",
        "ce_source": f"/tallyhook/{settings.installation.schema_name}",
        "ce_subject": "dep_3_0",
        "ce_version": "0",
        "ce_causationid": "evt_3_0",
        "ce_outboxpartition": "3",
        "ce_outboxseq": "0",
        "ce_dataschema": "/schemas/effects/release_goods.json",
        "content-type": "application/json",
    }
    assert found[1].topic == names.effect("hold_goods")


def test_balance_entries_have_their_own_topic_and_progress_rides_along(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """A balance entry goes to balance-entries; the progress names the last row by number and id."""
    writer.add(3, partitions=[1])
    relay = start_relay()
    eventually("the rows are sent", lambda: relay.metric("tallyhook_relay_sent_total") == 3)
    names = TopicNames(settings.installation.topic_prefix)
    assert [effect.seq for effect in reader.committed() if effect.topic == names.balance_entries] == [2]
    progress: list[Message] = kafka.read_to_end(settings.kafka, names.relay_progress, timeout_seconds=20)
    row = writer.connection.execute(
        b"SELECT id::text FROM " + writer.table("pg_outbox").as_bytes(writer.connection) + b" WHERE seq = 2"
    ).fetchone()
    assert row is not None
    assert text_of(progress[-1].key()) == "1"
    assert progress[-1].partition() == 1
    assert json.loads(text_of(progress[-1].value())) == {"seq": 2, "id": row[0]}


def test_a_notification_wakes_it(start_relay: StartRelay, writer: OutboxWriter) -> None:
    """With a minute between polls, a row is sent at once when its commit was notified."""
    relay = start_relay(TALLYHOOK_RELAY_POLL_SECONDS="60")
    eventually("the relay has nothing to do", lambda: relay.metric("tallyhook_relay_backlog_rows") == 0)
    for number in range(1, 4):
        writer.add(1, partitions=[0], notify=True)
        eventually("the row is sent", partial(_has_sent, relay, number), seconds=5)


def test_polling_alone_is_complete(start_relay: StartRelay, writer: OutboxWriter) -> None:
    """Rows whose notification never came are sent as well."""
    relay = start_relay(TALLYHOOK_RELAY_POLL_SECONDS="0.1")
    relay.await_active()
    writer.add(1, partitions=[2], notify=False)
    eventually("the row is sent", lambda: relay.metric("tallyhook_relay_sent_total") == 1, seconds=10)


def test_the_throughput_profile_gathers(start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader) -> None:
    """Under a steady load, transactions hold what came in half a second instead of one batch of the sink each."""
    relay = start_relay(TALLYHOOK_PROFILE="throughput")
    relay.await_active()
    batches = 0
    with Load(writer) as load:
        eventually("it sends", lambda: (relay.metric("tallyhook_relay_transactions_total") or 0) >= 4)
        batches = load.batches
    eventually("everything is sent", lambda: reader.has(writer.expected()))
    transactions = relay.metric("tallyhook_relay_transactions_total")
    assert transactions is not None
    assert transactions * 3 < batches


def test_a_large_backlog_drains_in_bounded_memory(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader
) -> None:
    """50,000 rows of 1 KiB, most of them in one partition, never take more than 200 MiB, and none is sent twice."""
    writer.add(2_000, filler=1024)
    for _ in range(4):
        writer.add(10_500, partitions=[1], filler=1024)
    total = sum(writer.next_seq.values())
    assert total == 50_000
    relay = start_relay()
    peak = 0

    def drained() -> bool:
        nonlocal peak
        peak = max(peak, psutil.Process(relay.pid).memory_info().rss)
        return relay.metric("tallyhook_relay_sent_total") == total

    eventually("the backlog is sent", drained, seconds=60)
    assert peak < 200 * MEBIBYTE, f"{peak / MEBIBYTE:.0f} MiB"
    eventually("the backlog is 0", lambda: relay.metric("tallyhook_relay_backlog_rows") == 0)
    assert reader.seqs() == writer.expected()


def _has_sent(relay: RelayProcess, rows: int) -> bool:
    return relay.metric("tallyhook_relay_sent_total") == rows
