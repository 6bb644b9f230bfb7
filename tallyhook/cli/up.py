"""`tallyhook up`: the whole pipeline on one machine, in the foreground."""

import signal
import threading
from pathlib import Path
from types import FrameType

import typer

from tallyhook import logs
from tallyhook.cli.output import console
from tallyhook.cli.progress import report_progress
from tallyhook.settings import load


def up(
    state_dir: Path = typer.Option(Path(".tallyhook"), help="Folder of data, keys and logs."),
    ready_file: Path | None = typer.Option(None, help="JSON with URLs, key and pids, written once traffic may come."),
    gateway: bool = typer.Option(
        False, "--gateway", help="The simulated gateway, too: it begins to deliver at once (TALLYHOOK_GATEWAY_SIM_...)."
    ),
) -> None:
    """Run everything on this machine until SIGTERM or Ctrl-C; what dies is started again.

    Kafka and PostgreSQL are taken from TALLYHOOK_KAFKA_BOOTSTRAP and TALLYHOOK_DATABASE_URL where set, else started
    here. A second `up` on the same state directory goes on where the first one was.

    Example: tallyhook up --ready-file ready.json

    Example: TALLYHOOK_GATEWAY_SIM_OBJECTS=500 tallyhook up --gateway
    """
    from tallyhook.operations.pipeline import Pipeline

    settings = load()
    logs.configure("up", settings.process.log_level, "console" if console.is_terminal else settings.process.log_format)
    stop = StopSignals()
    with report_progress() as report:
        pipeline = Pipeline(settings, state_dir, ready_file, report, gateway=gateway)
        pipeline.start()
    try:
        print_addresses(pipeline.describe())
        console.print(f"in another shell: source {pipeline.exports_file}", markup=False, soft_wrap=True)
        stop.wait()
    finally:
        console.print("stopping ...")
        pipeline.stop()


class StopSignals:
    """SIGTERM and SIGINT: during the start they interrupt it, later they set what `wait` waits for."""

    def __init__(self) -> None:
        self._stop, self._started = threading.Event(), False
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def wait(self) -> None:
        """Returns at the first signal."""
        self._started = True
        while not self._stop.wait(1.0):
            pass

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if not self._started and not self._stop.is_set():
            self._stop.set()
            raise KeyboardInterrupt
        self._stop.set()


def print_addresses(ready: dict[str, object]) -> None:
    """The URLs a person needs now; never the key."""
    lines = [
        f"webhooks  {ready['ingress_url']}/webhooks",
        f"kafka     {ready['kafka_bootstrap']} (topics {ready['topic_prefix']}.*)",
        f"postgres  {ready['database_url']} (schema {ready['schema']})",
    ]
    if ready["gateway_url"] is not None:
        lines.append(f"gateway   {ready['gateway_url']} (simulated)")
    metrics = ready["metrics_urls"]
    lines += [f"metrics   {url} ({name})" for name, url in (metrics.items() if isinstance(metrics, dict) else ())]
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
