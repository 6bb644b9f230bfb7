"""`tallyhook timeline`: what the end user sees of an order, and what support sees of it."""

from dataclasses import asdict
from enum import StrEnum

import typer

from tallyhook.cli.escaping import escaped
from tallyhook.cli.explain import Language
from tallyhook.cli.output import JsonOption, errors, print_json
from tallyhook.cli.timeline_support import print_support
from tallyhook.errors import UsageError
from tallyhook.operations.timeline.answer import Answer, ObjectAnswer, Question, ask
from tallyhook.operations.timeline.catalogue import catalogue
from tallyhook.operations.timeline.clock_words import DEFAULT_ZONE, zone
from tallyhook.operations.timeline.store import LIMIT_MAX
from tallyhook.operations.timeline.store import By as ByName
from tallyhook.postgres import connect
from tallyhook.settings import load


class By(StrEnum):
    """What the argument is."""

    ID = "id"
    ORDER = "order"
    USER = "user"
    TICKET = "ticket"


_NAMES: dict[By, ByName] = {By.ID: "id", By.ORDER: "order", By.USER: "user", By.TICKET: "ticket"}

_CHECK = {
    By.ID: "Check that it is the id of a deposit, a withdrawal or a balance transaction, as the gateway calls it"
    " (`tallyhook explain` takes an event's id); for your own words give --by order, --by user or --by ticket.",
    By.ORDER: "Check that pg_deposit_correlations has the order; a withdrawal is found with --by ticket.",
    By.USER: "Check that pg_deposit_correlations has the user; a withdrawal is found with --by ticket.",
    By.TICKET: "Check that it is the merchant_reference or the ticket of a withdrawal; a deposit is found with"
    " --by order.",
}


def timeline(
    key: str = typer.Argument(metavar="OBJECT_ID", help="The object's id, or with --by your own word for it."),
    by: By = typer.Option(By.ID, help="What the argument is: the object's id, or your order, user or ticket."),
    lang: Language = typer.Option(Language.TH, help="Language of the page."),
    tz: str = typer.Option(DEFAULT_ZONE, help="Time zone of the page, a name of the IANA list."),
    support: bool = typer.Option(False, "--support", help="Add every delivery, verdict, reason and effect."),
    limit: int = typer.Option(100, min=1, max=LIMIT_MAX, help="Most objects, and with --support most events of each."),
    as_json: JsonOption = False,
) -> None:
    """Print the page of an order as its end user sees it, in Thai time unless --tz says otherwise.

    Exit code 1 if no store knows the object.

    Example: tallyhook timeline wdr_01K3PBQ7X4M2TN9YR0HDVKW6SC --lang en --tz UTC

    Example: tallyhook timeline ord_5 --by order --support
    """
    place = zone(tz)
    if not key or "\x00" in key:
        raise UsageError("give the id of an object, or with --by your own word for it")
    settings = load()
    question = Question(key, _NAMES[by], lang.value, place, support, limit)
    with connect(settings.database, "timeline") as connection:
        answer = ask(connection, settings.installation, question)
    if answer is None:
        errors.print(
            f"tallyhook: {by.value} {escaped(key)} is in no store of schema {settings.installation.schema_name}."
            f" {_CHECK[by]} Its events may still be on their way (compare the lag metrics), belong to the other mode,"
            " or never have arrived.",
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(1)
    if as_json:
        print_json(asdict(answer))
    else:
        _print(answer)


def _print(answer: Answer) -> None:
    """The pages one below the other; several of a key under a line that counts them."""
    words = catalogue(answer.language)
    if answer.by != "id":
        print(escaped(words.text(f"found.{answer.by}", key=answer.key, total=answer.total)))
        shown = len({one.page.object_id for one in answer.objects})
        if answer.total > shown:
            print(words.text("unfinished.cut", shown=shown, total=answer.total))
        print()
    for place, one in enumerate(answer.objects):
        if place:
            print()
        _print_object(one, answer)


def _print_object(one: ObjectAnswer, answer: Answer) -> None:
    for text in one.page.texts():
        print(escaped(text))
    if one.support is not None:
        print_support(one.support, catalogue(answer.language), zone(answer.zone))
