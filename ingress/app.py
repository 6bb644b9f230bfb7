"""The ingress process: put together here, run until SIGTERM."""

import asyncio
import resource
import signal

from ingress.door import Door
from ingress.endpoint_settings import read_endpoints
from ingress.endpoints import by_path
from ingress.kafka_watch import KafkaWatch
from ingress.key_watch import KeyWatch
from ingress.limits import Limits
from ingress.server import Server
from tallyhook import kafka, logs
from tallyhook.clock import SystemClock
from tallyhook.errors import TallyhookError
from tallyhook.metrics import Metrics
from tallyhook.settings import Settings

_log = logs.logger(__name__)

FATAL_EXIT_CODE = 70
"""sysexits.h EX_SOFTWARE: the supervisor starts a new process."""

_SPARE_CONNECTIONS = 1000
_OTHER_FILES = 128
_FLUSH_SECONDS = 2.0


def run(settings: Settings) -> int:
    """Serves webhooks until SIGTERM or SIGINT; blocks.

    Returns:
        0 after a clean end, 2 for settings that cannot be used, 1 where the topics or the port are not as they
        must be, 70 when nothing can be published any more and a new process is needed.
    """
    logs.configure("ingress", settings.process.log_level, settings.process.log_format)
    try:
        return asyncio.run(_Process(settings).run())
    except TallyhookError as failure:
        _log.error("ended", reason=str(failure), exit_code=failure.exit_code)
        return failure.exit_code


class _Process:
    def __init__(self, settings: Settings) -> None:
        kafka.client_config(settings.kafka)  # refuses a missing bootstrap before anything listens
        self._settings = settings
        self._metrics = Metrics()
        clock = SystemClock()
        self._endpoints = read_endpoints(settings.ingress)
        self._door = Door(
            by_path(self._endpoints),
            settings.installation,
            max_in_flight=settings.ingress.max_in_flight,
            metrics=self._metrics,
            clock=clock,
            not_ready=self._not_ready,
            not_live=self._not_live,
        )
        self._watch = KafkaWatch(settings, self._door, self._endpoints, self._on_fatal)
        self._keys = KeyWatch(
            self._endpoints, reload_seconds=settings.ingress.key_reload_seconds, metrics=self._metrics, clock=clock
        )
        wanted = settings.ingress.max_in_flight + _SPARE_CONNECTIONS
        self._server = Server(
            self._door,
            Limits(
                max_headers=settings.ingress.max_headers,
                max_header_bytes=settings.ingress.max_header_bytes,
                body_timeout_seconds=settings.ingress.body_timeout_seconds,
                max_held_bytes=settings.ingress.max_held_bytes,
            ),
            max_connections=_allow_files(wanted + _OTHER_FILES) - _OTHER_FILES,
        )
        self._door.make_room = self._server.cut_oldest_body
        self._stop: asyncio.Future[int] | None = None
        self._ending = False
        self._fatal: str | None = None

    async def run(self) -> int:
        """Until a signal or the end of all publishing; the exit code."""
        loop = asyncio.get_running_loop()
        self._stop = loop.create_future()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._finish, 0)
        self._show_endpoints()
        port = await self._server.start(self._settings.ingress.host, self._settings.ingress.port)
        _log.info("listening", host=self._settings.ingress.host, port=port)
        tasks = [loop.create_task(self._watch.run()), loop.create_task(self._keys.run())]
        for task in tasks:
            task.add_done_callback(self._task_ended)
        try:
            code = await self._stop
        finally:
            for task in tasks:
                task.cancel()
            await self._drain()
        return code

    async def _drain(self) -> None:
        """Says that it ends, lets what is under way be answered, then closes the publisher."""
        loop = asyncio.get_running_loop()
        self._ending = True
        deadline = loop.time() + self._settings.ingress.shutdown_seconds
        self._server.announce_end()
        if self._fatal is None and self._watch.publisher is not None:
            await asyncio.sleep(
                min(self._settings.ingress.announce_seconds, self._settings.ingress.shutdown_seconds / 2)
            )
        self._door.shutting_down = True
        cut = await self._server.stop(deadline - loop.time() - _FLUSH_SECONDS / 2)
        left = 0
        if self._watch.publisher is not None:
            seconds = min(_FLUSH_SECONDS, max(0.1, deadline - loop.time()))
            left = await asyncio.to_thread(self._watch.publisher.close, seconds)
        _log.info("stopped", connections_cut=cut, records_unconfirmed=left)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        """Neither task ends by itself: what ended it ends the process."""
        failure = None if task.cancelled() else task.exception()
        if failure is not None and self._stop is not None and not self._stop.done():
            self._stop.set_exception(failure)

    def _finish(self, code: int) -> None:
        if self._stop is not None and not self._stop.done():
            self._stop.set_result(code)

    def _on_fatal(self, reason: str) -> None:
        if self._fatal is None:
            self._fatal = reason
            _log.error("nothing can be published any more; a new process is needed", reason=reason)
            self._finish(FATAL_EXIT_CODE)

    def _not_ready(self) -> list[str]:
        reasons = ["shutting down"] if self._ending else []
        return reasons + self._not_live() + self._watch.not_ready()

    def _not_live(self) -> list[str]:
        return [self._fatal] if self._fatal is not None else []

    def _show_endpoints(self) -> None:
        for endpoint in self._endpoints:
            _log.info(
                "endpoint",
                paths=endpoint.paths,
                scheme=endpoint.scheme_name,
                merchant=endpoint.merchant,
                max_body_bytes=endpoint.max_body_bytes,
            )
        self._keys.show()


def _allow_files(wanted: int) -> int:
    """Raises the soft limit of open files towards `wanted`; gives what is allowed, so that accepting never fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        _log.warning("fewer connections than requests are allowed at once", open_files=allowed, wanted=wanted)
    return max(allowed, _OTHER_FILES * 2)
