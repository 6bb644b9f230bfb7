"""`tallyhook bench`: how fast, beside the program everyone would write by hand, measured in the same run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from pydantic import SecretStr

from tallyhook.cli.output import console
from tallyhook.cli.progress import report_progress
from tallyhook.errors import UsageError
from tallyhook.settings import DatabaseSettings, KafkaSettings, load

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure stages beside hand-written ones, in the same run. Needs a checkout: the baseline stands in tests/."
    "\n\nExample: tallyhook bench sink --events 40000",
)

Events = typer.Option(40_000, min=1_000, max=1_000_000, help="Events to measure with.")


@app.command("sink")
def sink(events: int = Events) -> None:
    """Bulk sink against one transaction an event, on one connection each.

    Example: tallyhook bench sink --events 40000
    """
    with _parts(kafka=False) as (_, database):
        try:
            from bench.sink import run
        except ImportError as failure:
            raise UsageError(f"bench sink needs the checkout of the repository ({failure})") from failure
        run(database, events, console.print)


@app.command("guard")
def guard(events: int = Events) -> None:
    """The stream's worker against a naive agent that awaits each event.

    Example: tallyhook bench guard --events 40000
    """
    with _parts(database=False) as (kafka, _):
        from bench.guard import run

        run(kafka, events, console.print)


@contextmanager
def _parts(*, kafka: bool = True, database: bool = True) -> Iterator[tuple[KafkaSettings, DatabaseSettings]]:
    """Kafka and PostgreSQL from the settings where given, else a local stack of their own that ends with the run."""
    from tallyhook.local.stack import local_stack

    settings = load()
    given = (settings.kafka.bootstrap is not None or not kafka) and (settings.database.url is not None or not database)
    if given:
        yield settings.kafka, settings.database
        return
    with TemporaryDirectory(prefix="tallyhook-bench-") as folder:
        with report_progress() as report:
            stack = local_stack(Path(folder), settings.kafka, settings.database, report)
            stack.start()
        try:
            yield (
                settings.kafka.model_copy(update={"bootstrap": stack.kafka_bootstrap}),
                settings.database.model_copy(update={"url": SecretStr(stack.database_url)}),
            )
        finally:
            stack.stop()
