"""`tallyhook topics`: what topics there are, and making them right."""

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum

import typer

from tallyhook.cli.output import JsonOption, print_json, print_table
from tallyhook.errors import UsageError
from tallyhook.operations import topics as operation
from tallyhook.operations.access import acl as access
from tallyhook.operations.access.acl_commands import commands
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


class AclFormat(StrEnum):
    """How the rights are written."""

    TABLE = "table"
    COMMANDS = "commands"


@app.command("acl")
def acl(
    principal: list[str] = typer.Option(
        [], help="PROCESS=PRINCIPAL, as sink=User:CN=sink; may be repeated. Unless given: User:tallyhook-PROCESS."
    ),
    output: AclFormat = typer.Option(
        AclFormat.TABLE, "--format", help="table, or commands: kafka-acls with the variables BOOTSTRAP and ADMIN."
    ),
    as_json: JsonOption = False,
) -> None:
    """Print the least rights with which each process works; asks no broker and changes nothing.

    Example: tallyhook topics acl

    Example: tallyhook topics acl --principal ingress=User:door --format commands > acls.sh
    """
    rights = access.rights(load().installation, _principals(principal))
    if as_json:
        print_json([asdict(right) for right in rights])
    elif output is AclFormat.COMMANDS:
        for line in commands(rights):
            print(line)
    else:
        columns = ("principal", "resource", "name", "pattern", "operation", "needed to")
        rows = [(r.principal, r.resource, r.name, r.pattern, r.operation, r.purpose) for r in rights]
        print_table("", columns, rows)


def _principals(given: Sequence[str]) -> dict[access.Process, str]:
    found = access.default_principals()
    for text in given:
        process, _, principal = text.partition("=")
        known = next((name for name in found if name == process), None)
        if known is None or not principal:
            raise UsageError(f"--principal {text}: must be PROCESS=PRINCIPAL, the process one of {', '.join(found)}")
        found[known] = principal
    return found


def _print(statuses: Sequence[operation.TopicStatus], as_json: bool) -> None:
    if as_json:
        print_json([asdict(status) for status in statuses])
        return
    rows = [(s.name, s.partitions, s.replication, s.topic_id, s.state) for s in statuses]
    print_table("", ("topic", "partitions", "replicas", "id", "state"), rows)
