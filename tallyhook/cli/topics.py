"""`tallyhook topics`: what topics there are, and making them right."""

from collections.abc import Sequence
from dataclasses import asdict

import typer

from tallyhook.cli.output import JsonOption, print_json, print_table
from tallyhook.operations import topics as operation
from tallyhook.settings import load

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show and make the installation's topics.\n\nExample: tallyhook topics show",
)


@app.command("show")
def show(as_json: JsonOption = False) -> None:
    """Compare every topic with what it must be. Exit code 1 when one is missing or wrong.

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 tallyhook topics show
    """
    statuses = operation.show(load())
    _print(statuses, as_json)
    if not all(status.right for status in statuses):
        raise typer.Exit(1)


@app.command("apply")
def apply(as_json: JsonOption = False) -> None:
    """Create missing topics, set configurations right, and record ids and partition counts in the database.

    A topic that was deleted and made anew, or that has another partition count, is refused and nothing is recorded.

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 TALLYHOOK_DATABASE_URL=postgresql://... tallyhook topics apply
    """
    _print(operation.apply(load()), as_json)


def _print(statuses: Sequence[operation.TopicStatus], as_json: bool) -> None:
    if as_json:
        print_json([asdict(status) for status in statuses])
        return
    rows = [(s.name, s.partitions, s.replication, s.topic_id, s.state) for s in statuses]
    print_table("", ("topic", "partitions", "replicas", "id", "state"), rows)
