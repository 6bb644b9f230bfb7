"""Three readers see an event: the door, the sink and PostgreSQL. They see the same, or the event is set aside."""

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from random import Random

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingress.envelope import BadEnvelope, Envelope, read
from ingress.records import event_headers
from schemas.events import DepositObject, WithdrawalObject
from schemas.headers import verdict_headers
from schemas.topics import TopicNames
from sinks.contents import DepositContent, TransactionContent, WithdrawalContent
from sinks.records import Arrival, Reader, SinkRecord
from tests.hostile import absurd

MAX_ID_BYTES = 512
READER = Reader(TopicNames("tallyhook"), livemode=True)
RECEIVED_AT = "2026-01-02T03:04:06+00:00"

MEMBERS = """
SELECT e ->> 'id', e ->> 'type', e -> 'livemode', e -> 'account' ->> 'merchant_id', (e ->> 'sequence')::numeric,
  e ->> 'created_at', o ->> 'id', o ->> 'object', (o ->> 'version')::numeric, o ->> 'status', o
FROM (SELECT %s::text::jsonb AS e) AS told, LATERAL (SELECT e -> 'data' -> 'object' AS o) AS entity
"""

chances = st.randoms(use_true_random=False)
searched = settings(
    max_examples=400,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


@pytest.fixture(scope="module")
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    """Asks PostgreSQL what it reads."""
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def at_the_door(raw: bytes) -> Envelope | None:
    """What the door reads; None for what it makes a dead letter of. Any other exception is a fault."""
    try:
        return read(raw, max_id_bytes=MAX_ID_BYTES)
    except BadEnvelope:
        return None


def at_the_sink(raw: bytes, envelope: Envelope) -> Arrival:
    """What the sink reads of the record that the door and the stream would have written."""
    headers = [
        *event_headers(envelope, source="/gateway", received_at=RECEIVED_AT, origin="webhook", key_id="k1"),
        *verdict_headers("advanced", None, None, 0, 0),
    ]
    return READER.read(SinkRecord(0, 0, 1, raw, headers))


def compare(connection: psycopg.Connection, raw: bytes) -> str:
    """Asserts that all who keep the event read the same; tells what became of it."""
    envelope = at_the_door(raw)
    if envelope is None:
        return "dead letter"
    arrival = at_the_sink(raw, envelope)
    if arrival.refusal is not None:
        assert arrival.content is None
        return "quarantine"
    row = connection.execute(MEMBERS, (raw.decode(),)).fetchone()
    assert row is not None
    kept = (
        envelope.id,
        envelope.type,
        envelope.livemode,
        envelope.merchant,
        envelope.sequence,
        envelope.created_at,
        envelope.object_id,
        envelope.kind,
        envelope.version,
        envelope.status or None,
    )
    assert row[:9] == kept[:9]
    assert (row[9] or None) == kept[9]
    compare_money(arrival, row[10])
    return "kept"


def compare_money(arrival: Arrival, entity: dict[str, object]) -> None:
    """Every number that the rules decide by is the number that the inbox shows."""
    content = arrival.content
    read_by_sink: DepositObject | WithdrawalObject
    if isinstance(content, DepositContent):
        read_by_sink = content.event.data.object
    elif isinstance(content, WithdrawalContent):
        read_by_sink = content.reading.event.data.object
    elif isinstance(content, TransactionContent):
        assert content.transaction.amount_minor == entity["amount_minor"]
        return
    else:
        return
    for name in read_by_sink.__struct_fields__:
        value = getattr(read_by_sink, name)
        if name.endswith(("_minor", "_splits")) or name in ("version", "id", "status"):
            shown = entity.get(name)
            assert value == (Decimal(str(shown)) if isinstance(shown, float) else shown), name


@searched
@given(chances, st.integers(1, 5))
def test_the_readers_agree_or_the_event_is_set_aside(
    connection: psycopg.Connection, chance: Random, number: int
) -> None:
    """Repeated and escaped keys, absurd numbers and texts, anywhere."""
    compare(connection, absurd.body(chance, number))


def test_the_search_meets_every_ending(connection: psycopg.Connection) -> None:
    """The same over many seeded bodies, so that the property cannot hold for want of cases."""
    chance = Random(20_260_101)
    endings = Counter(compare(connection, absurd.body(chance, number)) for number in range(1_500))

    assert min(endings[ending] for ending in ("dead letter", "quarantine", "kept")) > 100, endings


GOOD = json.dumps(
    {
        "id": "evt_1",
        "type": "deposit.settled",
        "livemode": True,
        "created_at": "2026-01-02T03:04:05Z",
        "sequence": 7,
        "account": {"merchant_id": "mer_1"},
        "data": {"object": {"id": "dep_1", "object": "deposit_order", "version": 3, "status": "open"}},
    }
).encode()


@pytest.mark.parametrize(
    ("told", "again"),
    [
        (b'"id": "evt_1"', b'"id": "evt_2", "id": "evt_1"'),
        (b'"id": "evt_1"', b'"\\u0069d": "evt_2", "id": "evt_1"'),
        (b'"id": "evt_1"', b'"id": "evt_2", "\\u0069d": "evt_1"'),
        (b'"id": "dep_1"', b'"id": "dep_2", "id": "dep_1"'),
        (b'"version": 3', b'"version": 9, "version": 3'),
        (b'"status": "open"', b'"status": "settled", "status": "open"'),
        (b'"livemode": true', b'"livemode": false, "livemode": true'),
        (b'"account": {', b'"account": {"merchant_id": "mer_2"}, "account": {'),
        (b'"data": {', b'"data": {"object": {"id": "dep_2", "object": "x", "version": 1, "status": "y"}}, "data": {'),
    ],
)
def test_of_a_repeated_member_all_take_the_last(connection: psycopg.Connection, told: bytes, again: bytes) -> None:
    """An earlier one counts for nobody: what the door checked is what the sink decides by and the inbox shows."""
    raw = GOOD.replace(told, again, 1)
    assert raw != GOOD
    assert compare(connection, raw) == "kept"
    assert at_the_door(raw) == at_the_door(GOOD)


@pytest.mark.parametrize(
    ("told", "again"),
    [
        (b'"id": "evt_1"', b'"id": "evt_1", "id": 7'),
        (b'"version": 3', b'"version": 3, "version": "3"'),
        (b'"version": 3', b'"version": 3, "version": 3.5'),
        (b'"version": 3', b'"version": 9223372036854775808'),
        (b'"version": 3', b'"version": true'),
        (b'"data": {', b'"data": null, "x": {'),
        (b'"sequence": 7', b'"sequence": 7, "sequence": 1e400'),
    ],
)
def test_a_bad_last_one_is_a_dead_letter(connection: psycopg.Connection, told: bytes, again: bytes) -> None:
    """A good first one does not hide it."""
    raw = GOOD.replace(told, again, 1)
    assert raw != GOOD
    assert compare(connection, raw) == "dead letter"


@pytest.mark.parametrize(
    ("told", "again"),
    [
        (b'"object": {"id"', b'"object": {"id": "dep_2"}, "object": {"id"'),
        (b'"id": "dep_1"', b'"id": 7, "id": "dep_1"'),
        (b'"version": 3', b'"version": "3", "version": 3'),
        (b'"sequence": 7', b'"sequence": 1e401, "sequence": 7'),
        (b'"type": "deposit.settled"', b'"type": "a\\u0000b", "type": "deposit.settled"'),
    ],
)
def test_a_bad_first_one_is_quarantined(connection: psycopg.Connection, told: bytes, again: bytes) -> None:
    """The typed reader and jsonb read the overwritten ones as well, so that such an event is set aside."""
    raw = GOOD.replace(told, again, 1)
    assert raw != GOOD
    assert compare(connection, raw) == "quarantine"
