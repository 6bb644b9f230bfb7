"""Events that wait in the inbox: how they become arrivals again, and how many of them one transaction takes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from schemas.headers import EventHeaders
from schemas.topics import TopicNames
from sinks.records import Arrival, Source, read_body


def waiting_arrival(row: Sequence[Any], names: TopicNames, *, livemode: bool) -> Arrival:
    """An event of the inbox that waited, as an arrival.

    Args:
        row: the columns that `load_parked` and `load_waiting` begin with.
        names: the installation's topics.
        livemode: the installation's mode, which the event passed when it came.
    """
    event_id, event_type, text, received_at, object_id, kind, version, merchant, sequence, partition = row[:10]
    arrival_seq, source_partition, source_offset, key_id, origin = row[10:]
    headers = EventHeaders(
        id=event_id,
        type=event_type,
        source="/inbox",
        subject=object_id,
        time=received_at.isoformat(),
        object_kind=kind,
        status="",
        version=version,
        merchant=merchant,
        sequence=sequence,
        livemode=livemode,
        received_at=received_at.isoformat(),
        origin=origin,
        key_id=key_id,
    )
    source = Source(names.events, source_partition, source_offset)
    arrival = Arrival(partition, None, 0, text.encode(), headers.encode(), source)
    arrival.headers, arrival.received_at, arrival.arrival_seq = headers, received_at, arrival_seq
    read_body(arrival, headers)
    return arrival


def choose(builders: Iterable[str], counts: Mapping[str, int], limit: int) -> tuple[list[str], set[str]]:
    """Which withdrawals' waiting events are decided with the batch, and for which it must end once the row is built.

    Args:
        builders: withdrawals that an event of the batch can build, in order of these events.
        counts: how many events wait, by withdrawal without a row.
        limit: most waiting events that the transaction may take.
    """
    chosen: list[str] = []
    left: set[str] = set()
    for object_id in builders:
        events = counts.get(object_id, 0)
        if events > limit:
            left.add(object_id)
        elif events:
            chosen.append(object_id)
            limit -= events
    return chosen, left
