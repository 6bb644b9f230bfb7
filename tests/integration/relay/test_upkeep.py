"""Rows that were sent long ago are pruned; what the progress names, what is young and what is unsent stays."""

from tallyhook.postgres import Queries
from tallyhook.settings import Settings
from tests.integration.relay.conftest import StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import OutboxWriter
from tests.integration.relay.waiting import eventually


def test_old_sent_rows_go_but_never_the_last(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader
) -> None:
    """Pruning leaves young rows and each partition's last sent one, and the relay goes on after both."""
    writer.add(30, age_days=20)
    writer.add(5, partitions=[1, 2, 3])
    relay = start_relay()
    eventually("all are sent", lambda: relay.metric("tallyhook_relay_sent_total") == 4 * 30 + 3 * 5)
    assert relay.stop() == 0
    relay = start_relay()
    eventually("the old ones are pruned", lambda: "sent rows pruned" in relay.log())
    assert [writer.seqs(partition) for partition in range(4)] == [[29], *([list(range(30, 35))] * 3)]
    writer.add(1, partitions=[0], notify=True)
    eventually("it sends on", lambda: relay.metric("tallyhook_relay_sent_total") == 1)
    assert relay.stop() == 0
    relay = start_relay()
    writer.add(1, partitions=[0], notify=True)
    eventually("it starts after what is left", lambda: relay.metric("tallyhook_relay_sent_total") == 1)
    assert reader.seqs()[0] == list(range(32))


def test_a_prune_is_bounded_and_touches_only_what_its_owner_has_sent(writer: OutboxWriter, settings: Settings) -> None:
    """Old rows that are unsent, or of a shard that another relay owns, are never deleted."""
    writer.add(20, age_days=20)
    cursors = writer.table("relay_cursors").as_bytes(writer.connection)
    writer.connection.execute(b"INSERT INTO %s (partition, sent_seq, owner) VALUES (0, 9, 'me')" % cursors)
    prune = Queries("sinks", "sql/relay.sql", settings.installation.schema_name)["prune"]
    wanted = {"partition": 0, "owner": "me", "rows": 4, "retention_seconds": 86_400.0}
    assert writer.connection.execute(prune, wanted | {"owner": "another"}).rowcount == 0
    assert writer.connection.execute(prune, wanted | {"retention_seconds": 21 * 86_400.0}).rowcount == 0
    assert [writer.connection.execute(prune, wanted).rowcount for _ in range(4)] == [4, 4, 1, 0]
    assert writer.seqs(0) == list(range(9, 20))
    assert writer.seqs(1) == list(range(20))
