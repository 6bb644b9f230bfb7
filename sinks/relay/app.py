"""The relay's process: what it is made of, how it starts, and what its end means."""

import os
import signal
import threading

from sinks.relay.lease import Lease
from sinks.relay.publisher import Publisher
from sinks.relay.shard import Shard
from sinks.relay.sharding import fix, partitions_of
from sinks.relay.status import Status, Stopping, patiently
from sinks.relay.upkeep import Upkeep
from tallyhook import logs
from tallyhook.clock import SystemClock
from tallyhook.errors import (
    KafkaUnavailable,
    OutboxGap,
    OutboxRewound,
    PositionLost,
    SettingsError,
    TallyhookError,
    TopicMismatch,
)
from tallyhook.failpoints import reach
from tallyhook.health import HealthServer
from tallyhook.lag import LagWatch
from tallyhook.metric_definitions import RelayHalt
from tallyhook.metrics import Metrics
from tallyhook.postgres import Queries
from tallyhook.settings import Settings

REPLACE = 70
"""Exit code of a process that must be replaced: EX_SOFTWARE of sysexits.h."""

LAST_RESORT_SECONDS = 25.0
"""A stop that takes longer, because PostgreSQL froze in the middle of a statement, ends the process hard."""

_HALTS: dict[type[TallyhookError], RelayHalt] = {
    OutboxGap: "outbox_gap",
    OutboxRewound: "outbox_rewound",
    PositionLost: "position_lost",
    TopicMismatch: "topic_mismatch",
}
HALTING = tuple(_HALTS)
"""Nothing but a person can mend these, so the process stays and says so instead of starting over and over."""

LOOK_AGAIN_SECONDS = 3.0
"""How often a relay whose outbox was rewound looks whether the database has again what was sent."""

_log = logs.logger(__name__)


def run(settings: Settings) -> int:
    """Relays one shard until SIGTERM or SIGINT; to be called from the main thread.

    Returns:
        0 after a stop, 2 for wrong settings, 70 when the process must be replaced.
    """
    logs.configure("relay", settings.process.log_level, settings.process.log_format)
    status, metrics, ended = Status(), Metrics(), threading.Event()
    lag_watch = LagWatch(settings.kafka, settings.installation, metrics, SystemClock())
    try:
        partitions = partitions_of(settings)
        _prepare(metrics, settings)
        health = _start_health(settings, status, metrics)
        try:
            _heed_signals(status, ended)
            _log.info("started", shard=settings.relay.shard, partitions=partitions, health_port=health.port)
            lag_watch.start()
            return _relay(settings, partitions, status, metrics)
        finally:
            ended.set()
            lag_watch.stop()
            health.stop()
    except SettingsError as failure:
        _log.critical("wrong settings", reason=str(failure))
        return failure.exit_code
    except TallyhookError as failure:
        _log.critical("the process must be replaced", reason=str(failure), error=type(failure).__name__)
        return REPLACE
    except Exception:  # noqa: BLE001  whatever it was, the supervisor must see it and start a new process
        _log.critical("the process must be replaced: unexpected error", exc_info=True)
        return REPLACE


def _prepare(metrics: Metrics, settings: Settings) -> None:
    """Every series from the start; the backlog's are of all partitions, so that each shard shows the same set."""
    metrics.prepare(
        "relay", partition=map(str, range(settings.installation.partitions)), shard=[str(settings.relay.shard)]
    )


def _start_health(settings: Settings, status: Status, metrics: Metrics) -> HealthServer:
    health = HealthServer(
        settings.process.health_host,
        settings.relay.health_port,
        metrics,
        not_live=tuple,  # the page is served by a thread, so an answer means that the process turns
        not_ready=status.not_ready,
    )
    health.start()
    return health


def _relay(settings: Settings, partitions: list[int], status: Status, metrics: Metrics) -> int:
    installation, relay = settings.installation, settings.relay
    queries = Queries("sinks", "sql/relay.sql", installation.schema_name)
    lease = Lease(settings.database, queries, partitions, relay.lease_seconds, status)
    upkeep = Upkeep(settings.database, queries, lease.owner, partitions, relay.outbox_retention_days, status, metrics)
    active = metrics.gauge("tallyhook_relay_active", shard=str(relay.shard))
    active.set(0)
    try:
        patiently(status, _log, lambda: fix(settings, queries))
        lease.acquire()
        reach("relay.lease_taken")
        active.set(1)
        publisher = Publisher(settings, installation.group_id(f"relay-{relay.shard}"), status)
        publisher.fence_others()
        reach("relay.fenced_others")
        upkeep.start()
        shard = Shard(settings, partitions, queries, publisher, status, metrics, SystemClock())
        _work(shard, publisher, status, metrics)
    except HALTING as failure:
        _show_halt(status, metrics, failure)
        _halt(status, failure)
    except Stopping:
        pass
    except KafkaUnavailable as failure:
        _log.warning("stopped without an answer of Kafka", reason=str(failure))
    finally:
        upkeep.stop()
        lease.release()
    status.check()
    _log.info("stopped")
    return 0


def _work(shard: Shard, publisher: Publisher, status: Status, metrics: Metrics) -> None:
    """Sends until the process is to end; a rewound outbox stops it until the rows that were sent are there again."""
    told = ""
    while not status.stopping:
        try:
            shard.work()
        except OutboxRewound as failure:
            _show_halt(status, metrics, failure)
            if str(failure) != told:
                told = str(failure)
                _tell_halt(failure)
            publisher.serve()
            status.pause(LOOK_AGAIN_SECONDS)


def _show_halt(status: Status, metrics: Metrics, failure: TallyhookError) -> None:
    status.halt(failure)
    metrics.gauge("tallyhook_relay_halted", reason=_HALTS[type(failure)]).set(1)


def _tell_halt(failure: TallyhookError) -> None:
    _log.critical("stopped: somebody must look at this", reason=str(failure), error=type(failure).__name__)


def _halt(status: Status, failure: TallyhookError) -> None:
    """Stays, says why on /readyz, and keeps the lease: another relay would stop at the same place."""
    _tell_halt(failure)
    while not status.stopping:
        status.pause(1.0)


def _heed_signals(status: Status, ended: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: status.stop())

    def last_resort() -> None:
        while not status.stopping:
            status.pause(60.0)
        if not ended.wait(LAST_RESORT_SECONDS):
            _log.critical("the stop takes too long, the process ends", seconds=LAST_RESORT_SECONDS)
            os._exit(REPLACE)

    threading.Thread(target=last_resort, name="last-resort", daemon=True).start()
