"""`tallyhook sink`: the process in the foreground, and giving up records that are gone before it applied them."""

import getpass
import os
import shlex
from collections.abc import Sequence
from enum import StrEnum

import typer

from schemas.topics import TopicNames
from tallyhook import logs
from tallyhook.cli.escaping import escaped
from tallyhook.cli.output import JsonOption, console, errors, print_json
from tallyhook.operations.accepted_losses import OFFSET_MAX, AcceptedLoss, Losses, LostPosition
from tallyhook.postgres import connect
from tallyhook.settings import load

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


class Topic(StrEnum):
    """Topics that a sink applies from stored positions."""

    STATE_CHANGES = "state-changes"
    DEAD_LETTERS = "dead-letters"


@app.callback()
def sink(context: typer.Context) -> None:
    """Apply state changes to PostgreSQL: rows, effects and the consumer's offset in one transaction.

    Runs in the foreground until SIGTERM. Health pages: /livez, /readyz and /metrics on TALLYHOOK_SINK_HEALTH_PORT
    (9102).

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 TALLYHOOK_DATABASE_URL=postgresql://... tallyhook sink
    """
    if context.invoked_subcommand is not None:
        return
    import sinks.worker

    raise typer.Exit(sinks.worker.run(load()))


@app.command("accept-loss")
def accept_loss(
    partition: int = typer.Option(..., min=0, max=(1 << 31) - 1, help="The partition that the sink named."),
    to_offset: int = typer.Option(..., min=0, max=OFFSET_MAX, help="Where it is to go on: the offset that it named."),
    reason: str = typer.Option(..., help="Why they are given up; kept in accepted_losses."),
    actor: str | None = typer.Option(None, help="Who decides this; kept too. The user of the system unless given."),
    topic: Topic = typer.Option(Topic.STATE_CHANGES, help="Which topic's position."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Say what would be given up and change nothing."),
    as_json: JsonOption = False,
) -> None:
    """Give up records that are gone from the topic before a sink applied them, so that the sinks go on behind them.

    A sink whose stored position lies outside of what the topic holds stops and names the range (/readyz). Restore the
    topic if you can. Otherwise this moves the position, and notes who did it and why; running sinks go on within
    seconds. What was given up the gateway still has: `tallyhook gaps` finds it, `tallyhook backfill` fetches it.

    Exit code 1, and nothing changed, when nothing is lost, or --to-offset would give up more than is lost.

    Example: tallyhook sink accept-loss --partition 3 --to-offset 200 --reason "retention was set to 1 h, ticket 12"
    """
    settings = load()
    logs.configure(
        "accept-loss", settings.process.log_level, "console" if errors.is_terminal else settings.process.log_format
    )
    names = TopicNames(settings.installation.topic_prefix)
    full_name = names.state_changes if topic is Topic.STATE_CHANGES else names.dead_letters
    with connect(settings.database, "accept-loss") as connection:
        losses = Losses(connection, settings, full_name)
        told = losses.accept(partition, to_offset, actor=actor or _system_user(), reason=reason, dry_run=dry_run)
        others = [lost for lost in losses.find() if lost.partition != partition]
    if as_json:
        print_json(_document(told, others))
    else:
        _print(told, others, topic)


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        # In a container the process may run under a number that has no name.
        return f"uid {os.getuid()}"


def _print(told: AcceptedLoss, others: Sequence[LostPosition], topic: Topic) -> None:
    lost, done = told.lost, told.accepted_at is not None
    console.print(
        f"{'given up' if done else 'would be given up'}: {_what(lost)}; it goes on at {told.to_offset}",
        markup=False,
        soft_wrap=True,
    )
    if done:
        noted = f"noted in accepted_losses: {escaped(told.actor)}, {escaped(told.reason)}"
        console.print(noted, markup=False, soft_wrap=True)
        for line in _next_steps(lost):
            console.print(line, markup=False, soft_wrap=True)
    for other in others:
        console.print(f"also lost: {_what(other)}: {_command(other, told, topic)}", markup=False, soft_wrap=True)


def _what(lost: LostPosition) -> str:
    place = f"partition {lost.partition} of {lost.topic}"
    if lost.records_gone:
        return f"records {lost.next_offset} to {lost.held.low - 1} ({lost.records_gone}) of {place}"
    gone = lost.next_offset - lost.held.high
    return f"the end of {place}, applied up to {lost.next_offset}, of which the broker lost {gone} records or more"


def _next_steps(lost: LostPosition) -> list[str]:
    steps = ["next: wait until /readyz of the sinks answers 200; they look every 2 s"]
    if lost.records_gone:
        steps += [
            "  tallyhook gaps                  what is missing of the gateway's sequence",
            "  tallyhook backfill --gaps       fetches it from the gateway's API",
            "  tallyhook backfill --since-sequence N    where nothing newer came yet: a gap needs a number behind it",
        ]
    return [*steps, "  tallyhook audit                 names what was given up, and whether all else agrees"]


def _command(lost: LostPosition, told: AcceptedLoss, topic: Topic) -> str:
    named = "" if topic is Topic.STATE_CHANGES else f" --topic {topic.value}"
    return (
        f"tallyhook sink accept-loss --partition {lost.partition} --to-offset {lost.to_offset}{named}"
        f" --reason {shlex.quote(escaped(told.reason))}"
    )


def _document(told: AcceptedLoss, others: Sequence[LostPosition]) -> dict[str, object]:
    return {
        "dry_run": told.accepted_at is None,
        **_position(told.lost),
        "to_offset": told.to_offset,
        "actor": told.actor,
        "reason": told.reason,
        "accepted_at": told.accepted_at,
        "others": [_position(lost) | {"to_offset": lost.to_offset} for lost in others],
    }


def _position(lost: LostPosition) -> dict[str, object]:
    return {
        "topic": lost.topic,
        "partition": lost.partition,
        "from_offset": lost.next_offset,
        "low_offset": lost.held.low,
        "high_offset": lost.held.high,
        "records": lost.records_gone,
    }
