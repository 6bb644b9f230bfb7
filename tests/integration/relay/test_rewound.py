"""The way out of a rewound outbox, on rows that a sink has made again: as they were, in another order, or otherwise."""

import json
from collections.abc import Mapping, Sequence

from confluent_kafka import TopicPartition
from psycopg import sql

from schemas.topics import TopicNames
from tallyhook import kafka
from tallyhook.settings import Settings
from tests.commands import Done, run
from tests.integration.relay.conftest import PARTITIONS, StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import OutboxWriter
from tests.integration.relay.relay_process import RelayProcess, settings_of
from tests.integration.relay.waiting import eventually

ROWS, KEPT = 12, 6
"""Rows a partition that are sent, and how many of them the database keeps."""

REMAKE = """
WITH gone AS (DELETE FROM {outbox} WHERE partition = %(partition)s AND seq >= %(first)s RETURNING *),
     place AS (SELECT seq, n FROM unnest(%(order)s::bigint[]) WITH ORDINALITY AS o(seq, n))
INSERT INTO {remade} SELECT gone.*, place.n FROM gone JOIN place USING (seq)"""
BACK = """
INSERT INTO {outbox} (partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key, causation_id,
  version, received_at)
SELECT partition, %(first)s + place - 1, aggregatetype, aggregateid, type, topic, payload, dedupe_key, causation_id,
  version, received_at FROM {remade} WHERE partition = %(partition)s"""


def test_rows_made_again_as_they_were_go_on_behind_what_was_sent(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """The command agrees, changes nothing until it is told to, and the relay that stood still goes on by itself."""
    relay = _rewind(start_relay, writer, {partition: range(KEPT, ROWS) for partition in range(PARTITIONS)})
    writer.add(3)
    seen = _rows(writer)
    looked = _recover(settings)
    assert looked.returncode == 0
    assert "everything that was sent is there again" in looked.stdout
    assert _rows(writer) == seen
    assert reader.seqs() == {partition: list(range(ROWS)) for partition in range(PARTITIONS)}
    assert _recover(settings, "--confirm").returncode == 0
    eventually("the new rows are sent", lambda: reader.has(writer.expected()))
    eventually("the relay is ready again", lambda: relay.status("/readyz") == (200, []))
    assert relay.metric("tallyhook_relay_halted") == 0
    again = _recover(settings, "--confirm")
    assert (again.returncode, "nothing was lost" in again.stdout) == (0, True)


def test_rows_in_another_order_get_the_numbers_that_were_sent(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """Events that waited come in another order, and others between them: what was sent is not sent again, the others
    once, behind it."""
    relay = _rewind(start_relay, writer, {1: [8, 7, 14, 6, 10, 13, 9, 12, 11]}, unsent={1: 3})
    report = json.loads(_recover(settings, "--json").stdout)
    assert [one["partition"] for one in report["partitions"]] == [1]
    assert report["partitions"][0]["unsent"] == 3
    sent = [(effect.seq, effect.headers["ce_id"]) for effect in reader.committed() if effect.partition == 1]
    assert _recover(settings, "--confirm").returncode == 0
    eventually("the others are sent", lambda: len(reader.seqs()[1]) == ROWS + 3)
    after = {effect.headers["ce_id"]: effect.seq for effect in reader.committed() if effect.partition == 1}
    assert len(after) == ROWS + 3
    assert {key: seq for seq, key in sent}.items() <= after.items()
    assert {seq: key for key, seq in after.items()} == {seq: key for seq, key, _ in _rows(writer)[1]}
    assert relay.stop() == 0


def test_what_is_missing_or_differs_is_named_and_nothing_is_changed(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """An effect that was sent and is not there, and one with another payload: exit code 1, also with --confirm."""
    order = {2: [6, 7, 9, 10, 11], 3: range(KEPT, ROWS)}
    relay = _rewind(start_relay, writer, order)
    other = sql.SQL("UPDATE {} SET payload = payload || '{{\"received\": 1}}' WHERE dedupe_key = 'deposit:3:9'")
    writer.connection.execute(other.format(writer.table("pg_outbox")))
    seen = _rows(writer)
    for options in ((), ("--confirm",)):
        told = _recover(settings, *options)
        assert told.returncode == 1
        assert "missing: deposit:2:8 (balance_entry, row 8, event evt_2_8)" in told.stdout
        assert "its event was not applied again yet" in told.stdout
        assert "differs: deposit:3:9 (release_goods, row 9, event evt_3_9)" in told.stdout
        assert "the payload is another" in told.stdout
    assert _rows(writer) == seen
    report = json.loads(_recover(settings, "--json").stdout)
    assert [(one["missing_rows"], one["differing_rows"]) for one in report["partitions"]] == [(1, 0), (0, 1)]
    assert reader.seqs() == {partition: list(range(ROWS)) for partition in range(PARTITIONS)}
    assert "outbox rewound: partition 2" in relay.await_halted()


def test_an_object_whose_effects_changed_places_differs(
    start_relay: StartRelay, writer: OutboxWriter, settings: Settings
) -> None:
    """Effects of one object have an order; if it was made the other way round, somebody must look at it."""
    same = sql.SQL("UPDATE {} SET aggregateid = 'dep_one' WHERE partition = 0 AND seq >= 8")
    writer.add(ROWS)
    writer.connection.execute(same.format(writer.table("pg_outbox")))
    relay = start_relay()
    eventually("all is sent", lambda: relay.metric("tallyhook_relay_sent_total") == ROWS * PARTITIONS)
    _remake(writer, 0, [6, 7, 9, 8, 10, 11])
    writer.end_relay_sessions()
    relay.await_halted()
    told = _recover(settings, "--confirm")
    assert told.returncode == 1
    assert "differs: deposit:0:9" in told.stdout
    assert "made before an effect of the same object that was sent before it" in told.stdout


def test_what_the_topics_no_longer_hold_is_not_guessed(
    start_relay: StartRelay, writer: OutboxWriter, settings: Settings
) -> None:
    """Where retention has cut what the database lost, the command says where the topics begin and changes nothing."""
    relay = _rewind(start_relay, writer, {0: range(KEPT, ROWS)})
    names = TopicNames(settings.installation.topic_prefix)
    admin = kafka.admin(settings.kafka)
    for topic in (names.effect("release_goods"), names.effect("hold_goods"), names.balance_entries):
        cut = [TopicPartition(topic, 0, 3)]
        for outcome in admin.delete_records(cut, operation_timeout=20).values():
            outcome.result(20)
    told = _recover(settings, "--confirm")
    assert told.returncode == 1
    assert "the effect topics begin at row" in told.stderr
    relay.await_halted()


def test_balances_that_were_announced_are_kept_and_the_others_go_on_from_them(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, settings: Settings
) -> None:
    """Deposits of one user in two partitions come in another order: what was sent says what it said, and the steps of
    the user's balance still join."""
    _enter(writer, {(0, 0): ("a", 100, 100), (1, 0): ("b", 20, 120), (0, 1): ("c", 3, 123)})
    relay = start_relay()
    eventually("all is sent", lambda: relay.metric("tallyhook_relay_sent_total") == 3)
    relay.freeze()
    writer.connection.execute(sql.SQL("DELETE FROM {}").format(writer.table("pg_outbox")))
    # c is now before a; and d, which was not sent, comes in between.
    _enter(writer, {(1, 0): ("b", 20, 20), (0, 0): ("c", 3, 23), (1, 1): ("d", 7, 30), (0, 1): ("a", 100, 130)})
    writer.end_relay_sessions()
    relay.thaw()
    relay.await_halted()
    report = json.loads(_recover(settings, "--confirm", "--json").stdout)
    assert report["mended"] is True
    assert report["balances"] == {"as_sent": 3, "announced_anew": 1, "users_that_do_not_join": []}
    eventually("the fourth is sent", lambda: reader.seqs() == {0: [0, 1], 1: [0, 1], 2: [], 3: []})
    payloads = [json.loads(effect.value) for effect in reader.committed()]
    steps = {one["entry_key"]: (one["amount_minor"], one["balance_after_minor"]) for one in payloads}
    assert steps == {"a": (100, 100), "b": (20, 120), "c": (3, 123), "d": (7, 130)}


def _rewind(
    start_relay: StartRelay,
    writer: OutboxWriter,
    orders: Mapping[int, Sequence[int]],
    unsent: Mapping[int, int] | None = None,
) -> RelayProcess:
    """A relay that has sent ROWS rows of each partition and then stands before an outbox that was made again so."""
    relay = start_relay()
    writer.add(ROWS)
    eventually("all is sent", lambda: relay.metric("tallyhook_relay_sent_total") == ROWS * PARTITIONS)
    relay.freeze()
    for partition, rows in (unsent or {}).items():
        writer.add(rows, partitions=[partition])
    for partition, order in orders.items():
        _remake(writer, partition, order)
    writer.end_relay_sessions()
    relay.thaw()
    assert "outbox rewound" in relay.await_halted()
    return relay


def _remake(writer: OutboxWriter, partition: int, order: Sequence[int]) -> None:
    """Rows from KEPT on as a sink makes them again: with new ids, at another moment, in this order of old numbers."""
    tables = {"outbox": writer.table("pg_outbox"), "remade": sql.Identifier("pg_temp", "remade")}
    place = {"partition": partition, "first": KEPT, "order": list(order)}
    with writer.connection.transaction():
        writer.connection.execute(
            sql.SQL("CREATE TEMP TABLE remade ON COMMIT DROP AS SELECT *, 0::bigint AS place FROM {} LIMIT 0").format(
                writer.table("pg_outbox")
            )
        )
        writer.connection.execute(sql.SQL(REMAKE).format(**tables), place)
        writer.connection.execute(sql.SQL(BACK).format(**tables), place)
    writer.next_seq[partition] = KEPT + len(order)


def _enter(writer: OutboxWriter, entries: Mapping[tuple[int, int], tuple[str, int, int]]) -> None:
    """Balance entries of one user by partition and number: key, amount and the balance after it; and the balance."""
    for (partition, seq), (key, amount, after) in entries.items():
        payload = {"entry_key": key, "user_id": "usr", "amount_minor": amount, "balance_after_minor": after}
        payload |= {"pg_deposit_id": f"dep_{key}", "our_order_id": "ord"}
        writer.connection.execute(
            sql.SQL(
                "INSERT INTO {} (partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key,"
                " causation_id, version, received_at) VALUES (%s, %s, 'deposit', %s, 'balance_entry', 'balance_entry',"
                " %s, %s, %s, 1, now())"
            ).format(writer.table("pg_outbox")),
            (partition, seq, f"dep_{key}", json.dumps(payload), key, f"evt_{key}"),
        )
        writer.next_seq[partition] = max(writer.next_seq[partition], seq + 1)
    total = sum(amount for _, amount, _ in entries.values())
    writer.connection.execute(
        sql.SQL(
            "INSERT INTO {} VALUES ('usr', %s)"
            " ON CONFLICT (user_id) DO UPDATE SET balance_minor = EXCLUDED.balance_minor"
        ).format(writer.table("pg_user_balances")),
        (total,),
    )


def _recover(settings: Settings, *options: str) -> Done:
    return run(("relay", "recover", *options), settings_of(settings))


def _rows(writer: OutboxWriter) -> dict[int, list[tuple[int, str, str]]]:
    """Number, key and id of every row, by partition."""
    query = sql.SQL("SELECT partition, seq, dedupe_key, id::text FROM {} ORDER BY 1, 2").format(
        writer.table("pg_outbox")
    )
    found: dict[int, list[tuple[int, str, str]]] = {}
    for partition, seq, key, row_id in writer.connection.execute(query):
        found.setdefault(partition, []).append((seq, key, row_id))
    return found
