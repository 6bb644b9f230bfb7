"""The command `tallyhook`: its groups, and how errors become exit codes."""

import os
import sys

import psycopg
import typer

from tallyhook import __version__, failpoints
from tallyhook.cli import (
    audit,
    backfill,
    bench,
    compare,
    demo,
    doctor,
    explain,
    gaps,
    gateway,
    import_,
    ingress,
    keys,
    migrate,
    parked,
    quarantine,
    reconcile,
    redrive,
    relay,
    send,
    settings,
    sign,
    sink,
    stages,
    timeline,
    topics,
    up,
)
from tallyhook.cli.output import errors
from tallyhook.errors import TallyhookError
from tallyhook.postgres import words

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C ended."""

app = typer.Typer(
    name="tallyhook",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Exactly-once business effects from at-least-once, out-of-order payment webhooks.\n\n"
    "Exit codes: 0 done, 1 the answer is no, 2 wrong usage or settings.",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"tallyhook {__version__}")
        raise typer.Exit


@app.callback()
def root(
    # Its callback does what the option says.
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),  # noqa: ARG001
) -> None:
    """Common options."""
    failpoints.arm(os.environ)


app.command("up")(up.up)
app.command("demo")(demo.demo)
app.command("ingress")(ingress.ingress)
app.command("stream")(stages.stream)
app.add_typer(sink.app, name="sink")
app.add_typer(relay.app, name="relay")
app.command("migrate")(migrate.migrate)
app.add_typer(topics.app, name="topics")
app.command("settings")(settings.settings)
app.command("doctor")(doctor.doctor)
app.command("explain")(explain.explain)
app.command("timeline")(timeline.timeline)
app.command("audit")(audit.audit)
app.add_typer(gaps.app, name="gaps")
app.command("backfill")(backfill.backfill)
app.command("reconcile")(reconcile.reconcile)
app.command("import")(import_.import_)
app.command("compare")(compare.compare)
app.command("parked")(parked.parked)
app.add_typer(quarantine.app, name="quarantine")
app.command("redrive")(redrive.redrive)
app.add_typer(keys.app, name="keys")
app.command("sign")(sign.sign)
app.command("send")(send.send)
app.command("gateway")(gateway.gateway)
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Runs the command and ends the process with 0, 1 or 2 (130 when it was interrupted)."""
    try:
        app()
    except TallyhookError as failure:
        errors.print(f"tallyhook: {failure}", markup=False, soft_wrap=True)
        sys.exit(failure.exit_code)
    except psycopg.OperationalError as failure:
        errors.print(f"tallyhook: PostgreSQL, during the command: {str(failure).strip()}", markup=False, soft_wrap=True)
        sys.exit(1)
    except SystemExit as end:
        # The library turns Ctrl-C into this code without a word.
        if end.code == INTERRUPTED:
            errors.print("tallyhook: interrupted")
        raise
    except psycopg.errors.InsufficientPrivilege as failure:
        errors.print(f"tallyhook: {words(failure)}", markup=False, soft_wrap=True)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("tallyhook: interrupted")
        sys.exit(INTERRUPTED)
