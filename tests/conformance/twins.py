"""One world, lived twice: by the sink in batches and by the reference handler one event at a time."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from schemas.headers import EventHeaders, verdict_headers
from sinks.batch import PARKED_ROWS_MAX, Applier
from sinks.records import SinkRecord
from tallyhook.postgres import Connection
from tallyhook.settings import Installation, SinkSettings
from tests.conformance.tables import Tables, clear, read_tables
from tests.conformance.worlds import PARTITIONS, Arrival, Batch, World
from tests.reference.handler import Delivery, Handler

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
NO_LIMIT = SinkSettings(quarantine_limit=1000)


class SinkTwin:
    """The real sink on a schema of its own."""

    def __init__(self, connection: Connection, installation: Installation) -> None:
        self._connection, self._installation = connection, installation
        self._schema = installation.schema_name

    def live(self, world: World, parked_rows_max: int = PARKED_ROWS_MAX) -> Tables:
        """Applies the world's batches, each in one transaction, and gives the rows that are left.

        Args:
            parked_rows_max: most events that waited a transaction; where more of them do, a batch takes several.
        """
        clear(self._connection, self._schema)
        self.go_on(world, parked_rows_max)
        return read_tables(self._connection, self._schema)

    def go_on(self, world: World, parked_rows_max: int = PARKED_ROWS_MAX) -> None:
        """Applies the world's batches to whatever the schema holds, as topics that begin anew bring them."""
        applier = Applier(self._connection, self._installation, NO_LIMIT, parked_rows_max=parked_rows_max)
        applier.claim(range(PARTITIONS))
        offsets: Counter[int] = Counter()
        for batch in world:
            _correlate(self._connection, self._schema, batch)
            if batch.looks_first:
                applier.apply_ready()
            records = []
            for arrival in batch.arrivals:
                records.append(_record(arrival, offsets[arrival.event.partition], applier))
                offsets[arrival.event.partition] += 1
            taken = applier.apply(records).taken if records else 0
            assert taken == len(records)
        applier.apply_ready()


class HandlerTwin:
    """The reference handler on a schema of its own; `verdicts` counts what it made of every delivery so far."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection, self._schema = connection, schema
        self.verdicts: Counter[str] = Counter()

    def live(self, world: World) -> Tables:
        """Delivers the world's arrivals one by one and gives the rows that are left."""
        clear(self._connection, self._schema)
        handler = Handler(self._connection, self._schema)
        for batch in world:
            for row in batch.correlations:
                handler.correlate(row.pg_deposit_id, row.merchant_reference, row.our_order_id, row.our_user_id)
            # The sink decides what waited for the batch's objects before the batch itself: so it must be here, as
            # two deposits may quarrel about one claim.
            touched = None if batch.looks_first else {arrival.event.object_id for arrival in batch.arrivals}
            handler.look_for_parked(touched)
            self.verdicts.update(_deliver(handler, arrival) for arrival in batch.arrivals)
        handler.look_for_parked()
        return read_tables(self._connection, self._schema)


def _deliver(handler: Handler, arrival: Arrival) -> str:
    event = arrival.event
    return handler.deliver(
        event.body,
        Delivery(
            event_id=event.event_id,
            object_id=event.object_id,
            partition=event.partition,
            source_partition=event.partition,
            source_offset=arrival.source_offset,
            received_at=_received_at(arrival),
        ),
    )


def _record(arrival: Arrival, offset: int, applier: Applier) -> SinkRecord:
    event = arrival.event
    headers = EventHeaders(
        id=event.event_id,
        type=event.type,
        source="/gateway",
        subject=event.object_id,
        time="2026-03-01T03:33:15.123Z",
        object_kind=event.object_kind,
        status=event.status,
        version=event.version,
        merchant="mer_1",
        sequence=event.sequence,
        livemode=event.livemode,
        received_at=_received_at(arrival).isoformat(),
        origin="webhook",
        key_id="reference",
    )
    # The stream's verdict decides nothing here, so it is left wrong on purpose.
    added = verdict_headers("advanced", None, None, event.partition, arrival.source_offset)
    return SinkRecord(event.partition, offset, applier.epoch(event.partition), event.body, [*headers.encode(), *added])


def _received_at(arrival: Arrival) -> datetime:
    return BEGIN + timedelta(seconds=arrival.source_offset)


def _correlate(connection: Connection, schema: str, batch: Batch) -> None:
    for row in batch.correlations:
        connection.execute(
            f'INSERT INTO "{schema}".pg_deposit_correlations'
            " (pg_deposit_id, merchant_reference, our_order_id, our_user_id) VALUES (%s, %s, %s, %s)",
            (row.pg_deposit_id, row.merchant_reference, row.our_order_id, row.our_user_id),
        )
