"""One visit: everything is asked for in an order in which what moves meanwhile does no harm, and nothing is changed."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from schemas.topics import TopicNames
from streams.positions import Positions
from tallyhook.clock import Clock
from tallyhook.errors import DatabaseUnavailable, KafkaUnavailable
from tallyhook.operations import topics as topic_operation
from tallyhook.operations.doctor import clocks, cluster, keys, limits, outbox, positions, schema, server, topics
from tallyhook.operations.doctor.broker import Broker, Topic, once_led
from tallyhook.operations.doctor.database import Database, SinkPosition
from tallyhook.operations.doctor.findings import Finding, Report
from tallyhook.postgres import connect, words
from tallyhook.settings import Settings, unknown_variables

IDLE_SECONDS = 3.0
"""A sink that works applies something of what waits within so long; one that takes over after a kill may not."""
IDLE_LOOK_SECONDS = 0.25


def examine(settings: Settings, environ: Mapping[str, str], clock: Clock) -> Report:
    """Looks at settings, keys, Kafka, PostgreSQL and clocks; what does not answer is named and the rest is looked at.

    Raises SettingsError when the address of Kafka or of the database is not set.

    Args:
        environ: the variables of the process, for those that are mistyped.
    """
    return _Visit(settings, environ, clock).report()


class _Visit:
    def __init__(self, settings: Settings, environ: Mapping[str, str], clock: Clock) -> None:
        self._settings, self._environ, self._clock = settings, environ, clock
        self._names = TopicNames(settings.installation.topic_prefix)
        self._findings: list[Finding] = []
        self._unreachable: list[str] = []
        self._unseen: list[str] = []

    def report(self) -> Report:
        endpoints, without = keys.endpoints_of(self._settings.ingress)
        self._findings += without
        now = self._clock.now()
        livemode = self._settings.installation.livemode
        self._findings += keys.examine(endpoints, livemode=livemode, now=now)
        self._examine_settings()
        broker = Broker(self._settings.kafka)
        found: dict[str, Topic] | None = None
        with self._asking():
            found = broker.topics([spec.name for spec in topic_operation.specs(self._settings)])
            self._findings += cluster.examine(broker.settings())
            self._findings += limits.examine(self._settings, found, endpoints)
        with self._asking():
            self._examine_stores(broker, found)
        self._examine_gateway_clock()
        self._findings.sort(key=lambda finding: finding.severity != "breaks")
        return Report(self._findings, self._unreachable, self._unseen)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """What does not answer is noted, and the visit goes on with the next."""
        try:
            yield
        except (KafkaUnavailable, DatabaseUnavailable) as failure:
            self._unreachable.append(" ".join(str(failure).split()))
        except psycopg.Error as failure:
            self._unreachable.append(f"PostgreSQL does not answer a question: {words(failure)}")

    def _examine_stores(self, broker: Broker, found: dict[str, Topic] | None) -> None:
        """What the database says, and where it and Kafka must agree."""
        installed = None
        try:
            with connect(self._settings.database, "doctor") as connection:
                asked = self._clock.now()
                database = Database(connection, self._settings)
                there = database.now()
                reading = clocks.Reading("the database's", there, asked, self._clock.now())
                self._findings += clocks.examine(reading, self._settings.ingress.tolerance_seconds)
                self._findings += server.examine(self._settings, database.server)
                wrong = database.wrong_revision()
                if wrong is not None:
                    self._findings.append(schema.examine_revision(self._settings, wrong))
                else:
                    installed = database.installed_topics()
                    self._findings += schema.examine(self._settings, database)
                    self._findings += outbox.examine_relays(self._settings, database)
                    self._findings += outbox.examine_sequences(self._settings, database)
                    with self._asking():
                        self._examine_agreement(broker, found or {}, database)
        finally:
            if found is not None:
                self._findings += topics.examine(self._settings, found, installed)
                with self._asking():
                    self._examine_stream(found)

    def _examine_agreement(self, broker: Broker, found: dict[str, Topic], database: Database) -> None:
        fenced = [found[name] for name in (self._names.state_changes, self._names.dead_letters) if name in found]
        lows = broker.lows(fenced)
        stored = database.positions()
        highs = broker.highs(fenced)
        lost = list(positions.examine_sink(fenced, stored, lows, highs))
        self._findings += lost
        if not lost:
            self._examine_idle(fenced, stored, highs, database)
        if self._names.relay_progress in found:
            progress = found[self._names.relay_progress]
            self._findings += outbox.examine_progress(self._settings, database, progress)

    def _examine_idle(
        self, fenced: list[Topic], stored: Sequence[SinkPosition], highs: positions.Ends, database: Database
    ) -> None:
        """Looks for a moment whether the sink moves where records wait."""
        still = positions.waiting(fenced, stored, highs)
        deadline = self._clock.monotonic_seconds() + IDLE_SECONDS
        pause = threading.Event()
        while still and self._clock.monotonic_seconds() < deadline:
            pause.wait(IDLE_LOOK_SECONDS)
            now = {(position.topic, position.partition): position.next_offset for position in database.positions()}
            still = {place: offset for place, offset in still.items() if now.get(place, 0) == offset}
        self._findings += positions.examine_idle(still, highs, IDLE_SECONDS)

    def _examine_stream(self, found: dict[str, Topic]) -> None:
        events = found.get(self._names.events)
        if events is None:
            return
        group = self._settings.installation.group_id("streams")
        seconds = self._settings.kafka.request_timeout_seconds
        reader = Positions(self._settings.kafka, self._names, group, seconds)
        read = once_led(lambda: reader.read(range(events.partitions)), seconds)
        self._findings += positions.examine_stream(reader, events, group, read)

    def _examine_gateway_clock(self) -> None:
        if self._settings.gateway_api.url is None:
            self._unseen.append("the gateway's clock: TALLYHOOK_GATEWAY_API_URL is not set")
            return
        try:
            reading = clocks.read_gateway(self._settings.gateway_api, self._clock)
        except (OSError, ValueError) as failure:
            self._unreachable.append(f"the gateway's API at {self._settings.gateway_api.url}: {failure}")
        else:
            self._findings += clocks.examine(reading, self._settings.ingress.tolerance_seconds)

    def _examine_settings(self) -> None:
        for name in unknown_variables(self._environ):
            self._findings.append(
                Finding(
                    "setting_unknown",
                    "warning",
                    ("P8",),
                    f"variable {name}",
                    "is set",
                    "a name that `tallyhook settings` lists",
                    "what was meant by it stands at its default",
                    f"correct or unset {name}",
                )
            )
        replication = self._settings.stream.replication
        if self._settings.installation.durability == "replicated" and replication < topic_operation.replication_of(
            self._settings
        ):
            self._findings.append(
                Finding(
                    "changelog_replication",
                    "warning",
                    ("P8",),
                    "the stream's changelog",
                    f"TALLYHOOK_STREAM_REPLICATION={replication}",
                    "TALLYHOOK_STREAM_REPLICATION=3, since TALLYHOOK_DURABILITY=replicated",
                    "the stream stands still while the broker with the changelog is away",
                    "set TALLYHOOK_STREAM_REPLICATION=3; a changelog that exists needs kafka-reassign-partitions.sh",
                )
            )
