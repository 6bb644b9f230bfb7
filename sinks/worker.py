"""The sink's process: what it is made of, how it starts, and what its end means."""

import os
import signal
import threading
from collections.abc import Callable

from schemas.topics import TopicNames
from sinks.correlations import CorrelationConsumer
from sinks.dead_letters import DeadLetters
from sinks.loop import Loop
from sinks.measures import Measures
from sinks.quarantine import QuarantineWindow
from sinks.sequence_keeper import SequenceKeeper
from sinks.state_changes import StateChanges
from sinks.status import Status
from sinks.store_watch import StoreWatch
from tallyhook import logs
from tallyhook.clock import SystemClock
from tallyhook.errors import SettingsError, TallyhookError
from tallyhook.health import HealthServer
from tallyhook.kafka import client_config
from tallyhook.lag import LagWatch
from tallyhook.metrics import Metrics
from tallyhook.settings import Settings

REPLACE = 70
"""Exit code of a process that must be replaced: EX_SOFTWARE of sysexits.h."""

DEAD_LETTER_ROWS = 500
LAST_RESORT_SECONDS = 25.0
"""A stop that takes longer, because PostgreSQL froze in the middle of a statement, ends the process hard."""

_log = logs.logger(__name__)


def run(settings: Settings) -> int:
    """Applies state changes until SIGTERM or SIGINT; to be called from the main thread.

    Returns:
        0 after a stop, 2 for wrong settings, 70 when the process must be replaced.
    """
    logs.configure("sink", settings.process.log_level, settings.process.log_format)
    sink = Sink(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sink.stop.set())
    try:
        return sink.run()
    except SettingsError as failure:
        _log.critical("wrong settings", reason=str(failure))
        return failure.exit_code
    except TallyhookError as failure:
        _log.critical("the process must be replaced", reason=str(failure), error=type(failure).__name__)
        return REPLACE


class Sink:
    """The loops of one process, each on a thread; the first one that ends unexpectedly ends them all.

    Attributes:
        stop: set to end the sink.
        metrics: what it measured.
        health: its health pages.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings, self._clock = settings, SystemClock()
        self.stop = threading.Event()
        self.metrics, self.status = Metrics(), Status(self._clock)
        self.metrics.prepare("sink", partition=map(str, range(settings.installation.partitions)))
        self._measures = Measures(self.metrics, self._clock)
        self._broken = threading.Event()
        self.health = HealthServer(
            settings.process.health_host,
            settings.sink.health_port,
            self.metrics,
            not_live=self.status.not_live,
            not_ready=self.status.not_ready,
        )

    def run(self) -> int:
        """Runs until `stop` is set (0) or something unexpected happens (70). Raises SettingsError, TallyhookError."""
        client_config(self._settings.kafka)
        if self._settings.database.url is None:
            raise SettingsError("TALLYHOOK_DATABASE_URL is not set: give a libpq URI, or use `tallyhook up`")
        self.health.start()
        _log.info("started", health_port=self.health.port)
        watches = self._watches()
        targets = self._targets()
        threads = [self._thread(name, target) for name, target in targets.items()]
        ended = threading.Event()
        try:
            for thread in (*threads, *watches):
                thread.start()
            while not self.stop.wait(1.0):
                self._measures.show_age()
                self._measures.stopped(targets, self.status.stopped())
            threading.Thread(target=_last_resort, args=(ended,), name="last-resort", daemon=True).start()
            for thread in threads:
                thread.join()
            for watch in watches:
                watch.stop()
        finally:
            ended.set()
            self.health.stop()
        if self._broken.is_set():
            return REPLACE
        _log.info("stopped")
        return 0

    def _watches(self) -> tuple[LagWatch, StoreWatch]:
        """Threads that measure what no loop of this process can know, and that nothing depends on."""
        settings, installation = self._settings, self._settings.installation
        return (
            LagWatch(settings.kafka, installation, self.metrics, self._clock),
            StoreWatch(settings.database, installation, self._measures, self._clock),
        )

    def _targets(self) -> dict[str, Callable[[], None]]:
        settings, names = self._settings, TopicNames(self._settings.installation.topic_prefix)
        window = QuarantineWindow(settings.sink.quarantine_limit)
        state_changes = Loop(
            "state-changes",
            settings,
            names.state_changes,
            settings.installation.group_id("sink"),
            lambda connection, topic_id: StateChanges(
                connection, topic_id, settings, window, self._measures, self._clock
            ),
            self.status,
            self.stop,
            self._clock,
            batch_rows=settings.sink.batch_rows or settings.profile.batch_rows,
            on_fence_lost=self._measures.fence_lost,
            on_lag=self._measures.lag,
        )
        dead_letters = Loop(
            "dead-letters",
            settings,
            names.dead_letters,
            settings.installation.group_id("sink-dead-letters"),
            lambda connection, topic_id: DeadLetters(
                connection, topic_id, settings, names.dead_letters, self._measures
            ),
            self.status,
            self.stop,
            self._clock,
            batch_rows=DEAD_LETTER_ROWS,
            on_fence_lost=self._measures.fence_lost,
            on_lag=lambda _: None,  # dead letters are rare: what waits of them is not shown
        )
        correlations = CorrelationConsumer(settings, self.status, self.stop)
        sequences = SequenceKeeper(settings, self.status, self._measures, self.stop, self._clock)
        return {
            "state-changes": state_changes.run,
            "dead-letters": dead_letters.run,
            "correlations": correlations.run,
            "sequences": sequences.run,
        }

    def _thread(self, name: str, target: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                target()
            except:  # noqa: E722  librdkafka's callbacks may raise a KafkaError that is no exception class of Python
                _log.critical("the process must be replaced: unexpected error", loop=name, exc_info=True)
                self._broken.set()
            finally:
                self.stop.set()

        return threading.Thread(target=guarded, name=name, daemon=True)


def _last_resort(ended: threading.Event) -> None:
    if not ended.wait(LAST_RESORT_SECONDS):
        _log.critical("the stop takes too long, the process ends", seconds=LAST_RESORT_SECONDS)
        os._exit(REPLACE)
