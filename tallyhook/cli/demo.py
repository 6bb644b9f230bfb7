"""`tallyhook demo`: three deposits through the whole pipeline, compared with what must come of them."""

import shutil
import tempfile
import time
import uuid
from dataclasses import replace
from pathlib import Path

import orjson
import typer

from schemas.reasons import REASONS
from schemas.topics import TopicNames
from tallyhook import logs
from tallyhook.cli.output import console, print_table
from tallyhook.cli.progress import report_progress
from tallyhook.cli.up import StopSignals, print_addresses
from tallyhook.operations import demo_story as story
from tallyhook.operations.demo import Outcome, Play, PlayedDelivery
from tallyhook.operations.pipeline import Pipeline
from tallyhook.postgres import connect
from tallyhook.settings import Settings, load


def demo(
    keep: bool = typer.Option(False, "--keep", help="Leave it running afterwards, until Ctrl-C."),
    state_dir: Path = typer.Option(Path(".tallyhook"), help="A new folder for this run is made in it."),
) -> None:
    """Start everything, post signed webhooks twice, late and out of order, and show that each effect came once.

    Expected values are written down in the program; exit code 1 when anything differs.

    Example: tallyhook demo --keep
    """
    settings = _own_installation(load())
    logs.configure("demo", "error", "console")
    signals = StopSignals()
    state_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=state_dir))
    ready_file = folder / "run" / "ready.json"
    with report_progress() as report:
        pipeline = Pipeline(settings, folder, ready_file, report)
        pipeline.start()
    agree = False
    try:
        waiting = pipeline.waiting_seconds
        console.print(f"ready: downloads took {pipeline.stack.download_seconds:.1f} s, waiting {waiting:.1f} s\n")
        began = time.monotonic()
        outcome = _play(pipeline.settings, pipeline.stages[0].url, pipeline)
        _show(outcome)
        agree = not outcome.differences
        played = time.monotonic() - began
        console.print(f"\nplayed in {played:.1f} s; waiting in all {played + waiting:.1f} s")
        if keep:
            print_addresses(pipeline.describe())
            console.print(f"in another shell: source {pipeline.exports_file}", markup=False, soft_wrap=True)
            console.print(f"ready file {ready_file}; Ctrl-C stops it", markup=False, soft_wrap=True)
            signals.wait()
    finally:
        pipeline.stop()
        if agree and not keep:
            pipeline.stack.discard()
            shutil.rmtree(folder, ignore_errors=True)
        else:
            console.print(f"data and logs are in {folder}", markup=False, soft_wrap=True)
    if not agree:
        raise typer.Exit(1)


def _own_installation(settings: Settings) -> Settings:
    """Topics and a schema of its own, so that given servers keep what they have and each run starts empty."""
    name = f"demo_{uuid.uuid4().hex[:8]}"
    installation = settings.installation.model_copy(update={"topic_prefix": name, "schema_": name, "livemode": True})
    ingress = settings.ingress.model_copy(update={"merchant_id": story.MERCHANT_ID})
    return replace(settings, installation=installation, ingress=ingress)


def _play(settings: Settings, ingress_url: str, pipeline: Pipeline) -> Outcome:
    installation = settings.installation
    with connect(settings.database, "demo") as connection:
        play = Play(
            ingress_url,
            pipeline.key,
            connection,
            installation.schema_name,
            TopicNames(installation.topic_prefix),
            settings.kafka,
        )
        return play.run(_say_posted)


def _say_posted(delivery: story.StoryDelivery, status: int) -> None:
    event = story.EVENTS[delivery.event]
    console.print(
        f"POST {event.id:8} v{event.version:<3} {event.status:14} -> {status}   {delivery.note}",
        markup=False,
        soft_wrap=True,
    )


def _show(outcome: Outcome) -> None:
    console.print()
    print_table(
        "Deliveries, in the order of their arrival",
        ("case", "event", "version", "status", "HTTP", "verdict", "why"),
        [_delivery_row(played) for played in outcome.deliveries],
    )
    console.print()
    print_table("Balances", ("user", "satang"), [(user, f"{minor:,}") for user, minor in outcome.balances.items()])
    console.print()
    print_table(
        "Overpayment flags kept",
        ("claim", "deposit", "first seen at version", "satang"),
        [(claim, *rest) for claim, rest in outcome.flags.items()],
    )
    console.print()
    print_table(
        "Effects, as a plain read_committed consumer reads them",
        ("effect", "object", "dedupe key (ce_id)", "outbox", "payload"),
        [(e.effect, e.subject, e.dedupe_key, e.position, orjson.dumps(e.payload).decode()) for e in outcome.effects],
    )
    console.print()
    if outcome.differences:
        console.print("This is NOT what must come of it:")
        for difference in outcome.differences:
            console.print(f"  {difference}", markup=False, soft_wrap=True)
    else:
        console.print(
            "All as expected: A's late expiry changed nothing, B was neither credited nor released,"
            " C's flag was kept from a late event, and each effect came once.",
            soft_wrap=True,
        )


def _delivery_row(played: PlayedDelivery) -> tuple[object, ...]:
    event = story.EVENTS[played.delivery.event]
    words = next((text.en for reason, text in REASONS.items() if reason == played.reason), "")
    if played.verdict is None:
        words = "Not authentic: nothing was stored." if played.delivery.forged else ""
    elif played.verdict == "advanced" and not words:
        words = "Newer than anything seen of its object."
    return event.case, event.id, f"v{event.version}", event.status, played.status, played.verdict or "-", words
