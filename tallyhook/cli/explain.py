"""`tallyhook explain`: what became of an event, and why."""

from dataclasses import asdict
from enum import StrEnum

import typer

from tallyhook.cli.output import JsonOption, console, errors, print_json, print_table
from tallyhook.operations.explain import EventExplanation
from tallyhook.operations.explain import explain as read
from tallyhook.postgres import connect
from tallyhook.settings import load


class Language(StrEnum):
    """Languages of the sentences."""

    EN = "en"
    TH = "th"


def explain(
    event_id: str = typer.Argument(help="The event's id, as the gateway calls it."),
    lang: Language = typer.Option(Language.EN, help="Language of the sentences."),
    as_json: JsonOption = False,
) -> None:
    """Print each delivery of an event with verdict and reason, and the effects it caused. Exit code 1 if unknown.

    Example: tallyhook explain evt_01J8Z

    Example: tallyhook explain evt_01J8Z --lang th --json
    """
    settings = load()
    with connect(settings.database, "explain") as connection:
        installation = settings.installation
        found = read(connection, installation.schema_name, installation.topic_prefix, event_id, lang.value)
    if found is None:
        errors.print(
            f"tallyhook: event {event_id} is in no store of schema {installation.schema_name}."
            " It may still be on its way (compare the lag metrics), belong to the other mode, or never have arrived.",
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)
    if as_json:
        print_json(asdict(found))
    else:
        print_explanation(found)


def print_explanation(found: EventExplanation) -> None:
    """For a person: the event, its deliveries, its effects, and where its object stands."""
    version = "" if found.version is None else f" v{found.version}"
    console.print(f"{found.event_id}  {found.event_type or '(unknown type)'}  {found.object_id}{version}", markup=False)
    rows = [
        (f"{d.at:%Y-%m-%d %H:%M:%S}", d.source, d.verdict, d.reason, f"{d.why} {d.next_step}".strip())
        for d in found.deliveries
    ]
    print_table("", ("delivered (UTC)", "where", "verdict", "reason", "why"), rows)
    if found.effects:
        sent = [
            (e.topic, e.dedupe_key, f"{e.partition}/{e.seq}", "yes" if e.sent else "not yet") for e in found.effects
        ]
        print_table("", ("effect", "dedupe key", "outbox", "sent"), sent)
    else:
        console.print("no effect")
    if found.object_now:
        now = ", ".join(f"{name} {value}" for name, value in found.object_now.items() if value is not None)
        console.print(f"now: {now}", markup=False)
