"""How late each stage is, seen from outside: the same numbers in every process, so that they outlive the stage itself.

A stage that has stopped shows nothing. So each process of stream, sink and relay asks Kafka how far each group came.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from schemas.topics import TopicNames
from tallyhook import logs
from tallyhook.clock import Clock
from tallyhook.lag_reader import LagReader, Waiting, quiet_client
from tallyhook.metric_definitions import LagTopic
from tallyhook.metrics import Metrics
from tallyhook.settings import Installation, KafkaSettings

LOOK_SECONDS = 5.0
CLOSE_SECONDS = 2.0

_log = logs.logger(__name__)


@dataclass(frozen=True, slots=True)
class Reading:
    """A topic and the group that reads it."""

    topic: str
    group: str


def readings(installation: Installation) -> dict[LagTopic, Reading]:
    """What is watched: by the name that the metric's label has."""
    names = TopicNames(installation.topic_prefix)
    return {
        "events": Reading(names.events, installation.group_id("streams")),
        "state-changes": Reading(names.state_changes, installation.group_id("sink")),
        "dead-letters": Reading(names.dead_letters, installation.group_id("sink-dead-letters")),
    }


class LagWatch(threading.Thread):
    """Measures every few seconds; nothing that fails here touches the work.

    Args:
        metrics: gets the lag in records, in seconds and as a share of the retention.
        clock: wall time for ages, monotonic time for how long ago it was measured.
    """

    def __init__(self, kafka: KafkaSettings, installation: Installation, metrics: Metrics, clock: Clock) -> None:
        super().__init__(name="lag-watch", daemon=True)
        self._kafka, self._installation, self._metrics, self._clock = kafka, installation, metrics, clock
        self._stopping = threading.Event()
        self._shown = {label: Shown(label, metrics, clock) for label in readings(installation)}
        self._away = False

    def run(self) -> None:
        """Until `stop`."""
        if self._kafka.bootstrap is None:
            # The stage itself refuses to work without, and says so.
            return
        client, partitions = quiet_client(self._kafka), self._installation.partitions
        readers = {
            label: LagReader(self._kafka, client, reading.topic, reading.group, partitions)
            for label, reading in readings(self._installation).items()
        }
        try:
            while not self._stopping.is_set():
                for label, reader in readers.items():
                    self._look(label, reader)
                self._stopping.wait(LOOK_SECONDS)
        finally:
            for reader in readers.values():
                reader.close()

    def stop(self) -> None:
        """Ends the thread; a request under way is not waited for longer than two seconds."""
        self._stopping.set()
        if self.is_alive():
            self.join(timeout=CLOSE_SECONDS)

    def _look(self, label: LagTopic, reader: LagReader) -> None:
        try:
            self._shown[label].measured(reader.read(), reader.retention_seconds())
            self._away = False
        except Exception as failure:  # noqa: BLE001  a display that has died would show the last numbers for ever
            if not self._away:
                _log.warning("the lag is not known", topic=label, reason=str(failure))
            self._away = True
        for shown in self._shown.values():
            shown.show_ages()


class Shown:
    """What is shown of one topic; the age of what waits grows on while Kafka does not answer."""

    def __init__(self, label: LagTopic, metrics: Metrics, clock: Clock) -> None:
        self._label, self._metrics, self._clock = label, metrics, clock
        self._measured_at = clock.monotonic_seconds()
        self._oldest: float | None = None
        self._retention_seconds: float | None = None

    def measured(self, waiting: Mapping[int, Waiting], retention_seconds: float | None) -> None:
        """Takes what was found by partition, and for how long the topic keeps a record (None: for ever)."""
        for partition, found in waiting.items():
            gauge = self._metrics.gauge("tallyhook_lag_events", topic=self._label, partition=str(partition))
            gauge.set(found.records)
        stamps = [found.oldest_timestamp for found in waiting.values() if found.oldest_timestamp is not None]
        self._oldest = min(stamps, default=None)
        self._retention_seconds = retention_seconds
        self._measured_at = self._clock.monotonic_seconds()

    def show_ages(self) -> None:
        """Shows how old the oldest record is by now, and how long ago anything was known."""
        now = self._clock.now().timestamp()
        age = 0.0 if self._oldest is None else max(0.0, now - self._oldest)
        self._metrics.gauge("tallyhook_lag_seconds", topic=self._label).set(age)
        share = age / self._retention_seconds if self._retention_seconds else 0.0
        self._metrics.gauge("tallyhook_lag_retention_ratio", topic=self._label).set(share)
        unknown = self._clock.monotonic_seconds() - self._measured_at
        self._metrics.gauge("tallyhook_lag_unknown_seconds", topic=self._label).set(unknown)
