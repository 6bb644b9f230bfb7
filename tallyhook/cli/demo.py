"""`tallyhook demo`: three deposits and a day of withdrawals through the whole pipeline, and what must come of them."""

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import typer

from schemas.reasons import REASONS
from schemas.topics import TopicNames
from tallyhook import logs
from tallyhook.cli.demo_day import show_day
from tallyhook.cli.output import console, print_table
from tallyhook.cli.progress import report_progress
from tallyhook.cli.up import StopSignals, print_addresses
from tallyhook.gateway.signing import SigningKey
from tallyhook.operations import demo_day_story as day_story
from tallyhook.operations import demo_story as story
from tallyhook.operations.demo import Outcome, Play, PlayedDelivery
from tallyhook.operations.demo_day import DayPlay
from tallyhook.operations.demo_day_compare import compare_day
from tallyhook.operations.demo_day_story import DayExpectation
from tallyhook.operations.demo_stores import Stores
from tallyhook.operations.pipeline import Pipeline
from tallyhook.postgres import connect
from tallyhook.settings import Settings, load

ENDPOINTS, DAY_KEYS, DAY_ENDPOINT = "endpoints.toml", "withdrawals_public_keys", "withdrawals"


def demo(
    keep: bool = typer.Option(False, "--keep", help="Leave it running afterwards, until Ctrl-C."),
    state_dir: Path = typer.Option(Path(".tallyhook"), help="A new folder for this run is made in it."),
) -> None:
    """Start everything, post signed webhooks twice, late and out of order, and show that each effect came once.

    First three deposits, then a day of withdrawals of the simulated gateway, with an event that never comes until a
    backfill fetches it. Expected values are written down in the program; exit code 1 when anything differs.

    Example: tallyhook demo --keep
    """
    logs.configure("demo", "error", "console")
    signals = StopSignals()
    run(load(), state_dir, day_story.EXPECTED, signals.wait if keep else None)


def run(settings: Settings, state_dir: Path, expected: DayExpectation, linger: Callable[[], None] | None) -> None:
    """Both acts; raises typer.Exit(1) when anything differs.

    Args:
        expected: of the day of withdrawals.
        linger: called before everything is stopped; what the run left is kept then.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="demo-", dir=state_dir))
    day_key = _day_endpoint(folder)
    settings = _own_installation(settings, folder)
    ready_file = folder / "run" / "ready.json"
    with report_progress() as report:
        pipeline = Pipeline(settings, folder, ready_file, report)
        pipeline.start()
    agree = False
    try:
        waiting = pipeline.waiting_seconds
        console.print(f"ready: downloads took {pipeline.stack.download_seconds:.1f} s, waiting {waiting:.1f} s\n")
        began = time.monotonic()
        agree = _play(pipeline, day_key, expected)
        played = time.monotonic() - began
        console.print(f"\nplayed in {played:.1f} s; waiting in all {played + waiting:.1f} s")
        if linger is not None:
            print_addresses(pipeline.describe())
            console.print(f"in another shell: source {pipeline.exports_file}", markup=False, soft_wrap=True)
            console.print(f"ready file {ready_file}; Ctrl-C stops it", markup=False, soft_wrap=True)
            linger()
    finally:
        pipeline.stop()
        if agree and linger is None:
            pipeline.stack.discard()
            shutil.rmtree(folder, ignore_errors=True)
        else:
            console.print(f"data and logs are in {folder}", markup=False, soft_wrap=True)
    if not agree:
        raise typer.Exit(1)


def _own_installation(settings: Settings, folder: Path) -> Settings:
    """Topics and a schema of its own, so that given servers keep what they have and each run starts empty."""
    name = f"demo_{uuid.uuid4().hex[:8]}"
    installation = settings.installation.model_copy(update={"topic_prefix": name, "schema_": name, "livemode": True})
    own = {"merchant_id": story.MERCHANT_ID, "endpoints_file": folder / ENDPOINTS}
    return replace(settings, installation=installation, ingress=settings.ingress.model_copy(update=own))


def _day_endpoint(folder: Path) -> SigningKey:
    """The second merchant's endpoint, with a key of its own; gives the secret half."""
    key = SigningKey.generate()
    (folder / DAY_KEYS).write_text(f"{day_story.MERCHANT_ID}={key.public_text()}\n", encoding="utf-8")
    lines = ("[[endpoint]]", f'name = "{DAY_ENDPOINT}"', f'merchant = "{day_story.MERCHANT_ID}"')
    text = "\n".join((*lines, f'keyring = "{DAY_KEYS}"', ""))
    (folder / ENDPOINTS).write_text(text, encoding="utf-8")
    return key


def _play(pipeline: Pipeline, day_key: SigningKey, expected: DayExpectation) -> bool:
    """Plays both acts and shows them; whether everything is as it must be."""
    settings, ingress_url = pipeline.settings, pipeline.stages[0].url
    installation = settings.installation
    with connect(settings.database, "demo") as connection:
        stores = Stores(connection, installation.schema_name, TopicNames(installation.topic_prefix), settings.kafka)
        console.print("First act: three deposits\n")
        outcome = Play(ingress_url, pipeline.key, stores).run(_say_posted)
        _show(outcome)
        console.print("\nSecond act: a day of withdrawals\n")
        _say(
            "One order of three chunks (eight events), one that is recalled with its replacement, one that expires half"
            " filled, and the movements of the wallet; one event is never delivered."
        )
        day_url = f"{ingress_url}/webhooks/{DAY_ENDPOINT}"
        day = DayPlay(settings, day_url, day_key, stores, _say).run(day_story.day())
        differences = compare_day(day, expected)
        show_day(day, expected, differences)
    return not outcome.differences and not differences


def _say(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)


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
