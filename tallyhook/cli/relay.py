"""`tallyhook relay`: the process in the foreground, and the way out when the database lost what was sent."""

from collections.abc import Iterator

import typer

from tallyhook import logs
from tallyhook.cli.escaping import escaped
from tallyhook.cli.output import JsonOption, console, errors, print_json
from tallyhook.operations.rewound.matching import Matched
from tallyhook.operations.rewound.recovery import OutboxRecovery, Report
from tallyhook.operations.rewound.sent import SentEffect
from tallyhook.postgres import connect
from tallyhook.settings import load

SHOWN_MAX = 20
"""Effects that are named a partition; --json names up to a thousand."""

LISTED_MAX = 1000

app = typer.Typer(rich_markup_mode=None, invoke_without_command=True)


@app.callback()
def relay(context: typer.Context) -> None:
    """Publish outbox rows, each exactly once, to the topic of its effect.

    Runs in the foreground until SIGTERM. Health pages: /livez, /readyz and /metrics on TALLYHOOK_RELAY_HEALTH_PORT
    (9103).

    Example: TALLYHOOK_KAFKA_BOOTSTRAP=broker:9092 TALLYHOOK_DATABASE_URL=postgresql://... tallyhook relay
    """
    if context.invoked_subcommand is not None:
        return
    import sinks.relay.app

    raise typer.Exit(sinks.relay.app.run(load()))


@app.command("recover")
def recover(
    confirm: bool = typer.Option(False, "--confirm", help="Put the outbox right. Without it nothing is changed."),
    as_json: JsonOption = False,
) -> None:
    """Let a relay go on that stopped with "outbox rewound", once the sink has made the lost rows again.

    A database that lost its last commits (a failover to a replica that was behind, a restored backup) no longer has
    rows that were sent. The sink makes them again by itself. This holds them against the effect topics, by dedupe key
    and content. Where everything that was sent is there again, --confirm gives the rows the numbers under which they
    were sent; what was not sent follows behind. Nothing is sent here, and nothing twice: a relay goes on by itself
    within seconds.

    Exit code 0 when all of it is there again (or nothing was lost), 1 when something is missing or differs: each such
    effect is named, and nothing is changed.

    Example: tallyhook relay recover && tallyhook relay recover --confirm
    """
    settings = load()
    logs.configure(
        "relay-recover", settings.process.log_level, "console" if errors.is_terminal else settings.process.log_format
    )
    with connect(settings.database, "relay-recover") as connection:
        recovery = OutboxRecovery(connection, settings)
        report = recovery.look()
        if confirm and report.rewound and report.agrees:
            report = recovery.mend()
    if as_json:
        print_json(_document(report))
    else:
        for line in _lines(report):
            console.print(line, markup=False, soft_wrap=True)
    raise typer.Exit(0 if report.agrees else 1)


def _lines(report: Report) -> Iterator[str]:
    if not report.rewound:
        yield "nothing was lost: the outbox has every row that was sent last"
        return
    for one in report.rewound:
        yield (
            f"partition {one.partition}: the database kept rows up to {one.kept_seq}, sent was up to {one.sent_seq};"
            f" {len(one.pairs)} of {one.sent_seq - one.kept_seq} were made again as they were sent,"
            f" {len(one.unsent)} more wait to be sent"
        )
        for effect in one.missing[:SHOWN_MAX]:
            yield f"  missing: {_what(effect)}: {report.waits[effect.dedupe_key]}"
        yield from _more(len(one.missing), "missing")
        for difference in one.differences[:SHOWN_MAX]:
            yield f"  differs: {_what(difference.sent)}: {escaped(difference.what)}"
        yield from _more(len(one.differences), "differing")
    for user_id in report.balances.unjoined[:SHOWN_MAX]:
        yield (
            f"user {escaped(user_id)}: the balances that were announced before and after the loss do not join; the sums"
            " are right, and `tallyhook audit` will name the steps"
        )
    if report.mended:
        yield "put right: the relay goes on by itself within seconds. Next: tallyhook audit"
    elif report.agrees:
        yield "everything that was sent is there again. Next: tallyhook relay recover --confirm"
    else:
        yield "nothing was changed. What is missing may come yet: look again. What differs somebody has to judge"


def _more(count: int, word: str) -> Iterator[str]:
    if count > SHOWN_MAX:
        yield f"  and {count - SHOWN_MAX} more {word}; --json names them"


def _what(effect: SentEffect) -> str:
    return (
        f"{escaped(effect.dedupe_key)} ({effect.effect}, row {effect.seq}, event {escaped(effect.causation_id)}),"
        f" sent at {effect.where}"
    )


def _document(report: Report) -> dict[str, object]:
    return {
        "rewound": bool(report.rewound),
        "agrees": report.agrees,
        "mended": report.mended,
        "partitions": [_partition(one, report) for one in report.rewound],
        "balances": {
            "as_sent": len(report.balances.as_sent),
            "announced_anew": len(report.balances.anew),
            "users_that_do_not_join": list(report.balances.unjoined[:LISTED_MAX]),
        },
    }


def _partition(one: Matched, report: Report) -> dict[str, object]:
    return {
        "partition": one.partition,
        "kept_seq": one.kept_seq,
        "sent_seq": one.sent_seq,
        "made_again": len(one.pairs),
        "unsent": len(one.unsent),
        "renumbered": len(one.new_numbers()) if one.agrees else None,
        "missing_rows": len(one.missing),
        "differing_rows": len(one.differences),
        "missing": [_effect(effect) | {"why": report.waits[effect.dedupe_key]} for effect in one.missing[:LISTED_MAX]],
        "differing": [_effect(each.sent) | {"what": each.what} for each in one.differences[:LISTED_MAX]],
    }


def _effect(effect: SentEffect) -> dict[str, object]:
    return {
        "seq": effect.seq,
        "effect": effect.effect,
        "dedupe_key": effect.dedupe_key,
        "object_id": effect.object_id,
        "event_id": effect.causation_id,
        "sent_at": effect.where,
    }
