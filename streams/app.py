"""The stream's process: the Faust app, its watchdog and its health pages, put together from the settings."""

import asyncio
import gc
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import faust

from schemas.topics import TopicNames
from streams.agent import Guardian
from streams.connection import broker_credentials, broker_urls
from streams.ending import ENDED_BY_ITSELF, end_process
from streams.faust_batches import batches
from streams.faust_repairs import RepairedApp, unexpected_versions
from streams.faust_stores import StoreWalk, WalkedTable
from streams.faust_view import FaustView, told
from streams.plan import Planner
from streams.positions import Positions, commit_note
from streams.publisher import Publisher
from streams.retention import STEP_SECONDS, Retention
from streams.table import ROCKSDB_OPTIONS, TABLE, ObjectTable
from streams.watchdog import Watchdog
from tallyhook import logs, topic_rules
from tallyhook.clock import Clock, SystemClock
from tallyhook.errors import KafkaUnavailable
from tallyhook.health import HealthServer
from tallyhook.lag import LagWatch
from tallyhook.metrics import Metrics
from tallyhook.settings import Settings

BATCH_BYTES = 32 << 20
COMMIT_SECONDS = 1.0
PROBE_TIMEOUT_SECONDS = 5.0
FIRST_ANSWER_SECONDS = 30.0
STOP_SECONDS = 60.0
QUEUE_EVENTS = 4096
"""Fetched and not yet judged; more than a batch, so that fetching goes on while a batch awaits its confirmations."""
LINGER_MS = 1
"""A batch is handed to librdkafka in one go and then awaited: more patience would only be time lost, twice a batch."""
GC_THRESHOLDS = (50_000, 20, 100)
"""A batch makes tens of thousands of objects that live until its ack; Python's own thresholds would walk over them
again and again, which takes a quarter of the worker's time."""

log = logs.logger(__name__)


@dataclass(frozen=True, slots=True)
class StreamApp:
    """A built worker, not yet started.

    Args:
        faust: the Faust app.
        view: what other threads may read of it.
        publisher: outputs and changelog.
    """

    faust: Any
    view: FaustView
    publisher: Publisher


def build_app(
    settings: Settings,
    metrics: Metrics,
    *,
    topic_id: str,
    clock: Clock | None = None,
    end: Callable[[str], NoReturn] = end_process,
) -> StreamApp:
    """Builds the worker of one installation; raises SettingsError.

    Args:
        settings: of the process.
        metrics: where it counts.
        topic_id: the id of the events topic, noted beside each commit.
        clock: for the day an object was last touched.
        end: ends the process; called from any thread.
    """
    installation, stream = settings.installation, settings.stream
    names = TopicNames(installation.topic_prefix)
    most_events = stream.batch_events or settings.profile.stream_batch_events
    app = _faust_app(settings, {names.events: commit_note(topic_id)}, most_events, end)
    publisher = Publisher(
        settings.kafka,
        linger_ms=LINGER_MS,
        delivery_timeout_seconds=stream.delivery_timeout_seconds,
        most_body_bytes=settings.ingress.max_body_bytes,
        on_failure=end,
    )
    table = app.Table(
        TABLE,
        partitions=installation.partitions,
        key_type=bytes,
        value_type=bytes,
        options=dict(ROCKSDB_OPTIONS) if stream.store == "rocksdb" else None,
        # The broker's clock and not the worker's decides how old a record is.
        extra_topic_configs={"message.timestamp.type": "LogAppendTime"},
    )
    planner = Planner(names, livemode=installation.livemode)
    clock = clock or SystemClock()
    objects = ObjectTable(table)
    guardian = Guardian(planner, objects, publisher, clock, metrics)
    retention = Retention(
        StoreWalk(app, table),
        objects.changelog_topic,
        publisher,
        clock,
        metrics,
        retention_days=stream.object_retention_days,
    )
    limits: dict[str, Any] = {"most_events": most_events, "most_bytes": BATCH_BYTES, "idle_seconds": STEP_SECONDS}

    async def guard(stream_of_events: Any) -> None:
        try:
            async for events in batches(stream_of_events, **limits, on_hole=end):
                if events:
                    await guardian.handle(events)
                await retention.step()
        except Exception as failure:
            log.exception("a batch failed")
            end(f"a batch failed: {failure!r}")

    source = app.topic(names.events, key_type=bytes, value_type=bytes, partitions=installation.partitions)
    app.agent(source, name=f"{installation.topic_prefix}.guard", concurrency=1)(guard)
    return StreamApp(app, FaustView(app, names.events, lambda: guardian.batches), publisher)


def _faust_app(settings: Settings, notes: Mapping[str, str], most_events: int, end: Callable[[str], NoReturn]) -> Any:
    installation, stream = settings.installation, settings.stream
    stream.data_dir.mkdir(parents=True, exist_ok=True)
    return RepairedApp(
        installation.group_id("streams"),
        commit_notes=notes,
        fetch_min_bytes=settings.profile.fetch_min_bytes,
        on_position_lost=end,
        broker=broker_urls(settings.kafka),
        broker_credentials=broker_credentials(settings.kafka),
        broker_session_timeout=stream.session_timeout_seconds,
        broker_heartbeat_interval=stream.session_timeout_seconds / 3,
        # Others must not wait longer for a slow member than their watchdogs do.
        broker_rebalance_timeout=max(stream.session_timeout_seconds, stream.stall_seconds * 2 / 3),
        # A request lost in a dead broker holds everything for so long; Faust wants it above the session's.
        broker_request_timeout=max(settings.kafka.request_timeout_seconds, stream.session_timeout_seconds + 1),
        broker_commit_interval=COMMIT_SECONDS,
        broker_max_poll_records=2000,
        consumer_auto_offset_reset="earliest",
        Table=WalkedTable,
        store="rocksdb://" if stream.store == "rocksdb" else "memory://",
        datadir=str(stream.data_dir),
        key_serializer="raw",
        value_serializer="raw",
        topic_replication_factor=stream.replication,
        topic_partitions=installation.partitions,
        topic_disable_leader=True,
        table_standby_replicas=0,
        stream_wait_empty=True,  # a stop or a rebalance waits for the batch in flight
        stream_buffer_maxsize=max(QUEUE_EVENTS, most_events),
        web_enabled=False,
        autodiscover=False,
    )


def run(settings: Settings) -> int:
    """Runs the worker until SIGTERM or SIGINT: 0 after a clean stop, 70 when it ended by itself.

    Raises TopicMismatch or PositionLost when the topics do not fit, KafkaUnavailable when the broker does not answer
    within half a minute, SettingsError; the command line ends with their exit codes.
    """
    process, installation = settings.process, settings.installation
    logs.configure("stream", process.log_level, process.log_format)
    if unexpected := unexpected_versions():
        log.warning("installed versions that the repairs of Faust were not written for", versions=unexpected)
    broker_urls(settings.kafka)
    names = TopicNames(installation.topic_prefix)
    positions = Positions(settings.kafka, names, installation.group_id("streams"), PROBE_TIMEOUT_SECONDS)
    try:
        topic_id = _check(positions, settings)
    except _StopRequested:
        return 0
    metrics = Metrics()
    metrics.prepare("stream", partition=map(str, range(installation.partitions)))
    lag_watch = LagWatch(settings.kafka, installation, metrics, SystemClock())
    built = build_app(settings, metrics, topic_id=topic_id)
    watchdog = Watchdog(
        built.view,
        positions,
        topic_id=topic_id,
        partitions=installation.partitions,
        stall_seconds=settings.stream.stall_seconds,
        clock=SystemClock(),
        metrics=metrics,
        end=end_process,
    )

    def not_ready() -> Sequence[str]:
        away = () if watchdog.broker_answers else ("the broker does not answer",)
        return (*built.view.not_ready(), *away)

    health = HealthServer(
        process.health_host, settings.stream.health_port, metrics, not_live=watchdog.not_live, not_ready=not_ready
    )
    health.start()
    log.info("stream starts", group=installation.group_id("streams"), health_port=health.port, topic_id=topic_id)
    watchdog.start()
    lag_watch.start()
    code = _serve(built.faust, on_stop=watchdog.stop)
    built.publisher.close()
    lag_watch.stop()
    health.stop()
    return code


class _StopRequested(Exception):
    pass


def _check(positions: Positions, settings: Settings) -> str:
    """The id of the events topic, once topics and positions fit."""

    def stop(*_: object) -> None:
        raise _StopRequested

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    deadline = time.monotonic() + FIRST_ANSWER_SECONDS
    partitions, names = settings.installation.partitions, TopicNames(settings.installation.topic_prefix)
    kept = [spec for spec in names.specs() if spec.name in (names.events, names.state_changes, names.dead_letters)]
    while True:
        try:
            topic_id = positions.check_topics(partitions)
            topic_rules.check(settings.kafka, kept, PROBE_TIMEOUT_SECONDS)
            found = positions.read(range(partitions))
            positions.check(found, topic_id)
        except KafkaUnavailable as failure:
            if time.monotonic() > deadline:
                raise
            log.warning("waiting for the broker", failure=str(failure))
            time.sleep(0.5)
            continue
        if beheaded := {number: at.low for number, at in found.items() if at.committed is None and at.low}:
            log.warning("no position yet, and the topic no longer has its first events", earliest_offsets=beheaded)
        return topic_id


class _QuietWorker(faust.Worker):  # type: ignore[misc]  # Faust has no types
    """Faust's worker without banner, spinner, debugger, process title and its own logging."""

    stop_requested: Callable[[], None]

    def _install_signal_handlers_unix(self) -> None:
        self.loop.add_signal_handler(signal.SIGINT, self._on_sigterm)
        self.loop.add_signal_handler(signal.SIGTERM, self._on_sigterm)

    def _schedule_shutdown(self, number: signal.Signals) -> None:
        if not self._signal_stop_time:
            self.stop_requested()
            late = threading.Timer(STOP_SECONDS, end_process, [f"the stop took more than {STOP_SECONDS:g} s"])
            late.daemon = True
            late.start()
        super()._schedule_shutdown(number)

    def _setproctitle(self, info: str, **_: Any) -> None:
        pass


def _serve(app: Any, on_stop: Callable[[], None]) -> int:
    gc.set_threshold(*GC_THRESHOLDS)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    worker = _QuietWorker(app, loglevel="INFO", quiet=True, override_logging=False, redirect_stdouts=False, loop=loop)
    worker.spinner, worker.stop_requested = None, on_stop
    try:
        worker.execute_from_commandline()
    except SystemExit as left:
        if not left.code:
            return 0
        # What it was stands above, with its stack: Faust does not hand it over.
        log.critical("the worker crashed", next="where the broker refused a right, see `tallyhook topics acl`")
        return ENDED_BY_ITSELF
    except Exception as failure:  # noqa: BLE001  whatever it was, the process did not stop cleanly
        log.critical("the worker crashed", failure=told(failure))
    return ENDED_BY_ITSELF
