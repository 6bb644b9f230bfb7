"""The whole answer to a question for a timeline, in the form that `--json` prints."""

from dataclasses import dataclass
from typing import Literal
from zoneinfo import ZoneInfo

from sinks.migrations import check
from tallyhook.operations.timeline.catalogue import Language, catalogue
from tallyhook.operations.timeline.page import Page
from tallyhook.operations.timeline.pages import page_of
from tallyhook.operations.timeline.records import Unfinished, Waiting
from tallyhook.operations.timeline.store import By, TimelineStore, one_moment
from tallyhook.operations.timeline.support import SupportStore, SupportView
from tallyhook.postgres import Connection
from tallyhook.settings import Installation

FORMAT = "tallyhook.timeline/1"
"""Rises when a member changes its meaning or goes; members may be added without."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked for.

    Args:
        key: the object's id, or the merchant's order, user or ticket.
        support: with every delivery, verdict, reason and effect.
        limit: most objects, and for support most events of each.
    """

    key: str
    by: By
    language: Language
    place: ZoneInfo
    support: bool
    limit: int


@dataclass(frozen=True, slots=True)
class ObjectAnswer:
    """One object: its page, and for support its history."""

    page: Page
    support: SupportView | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found.

    Args:
        view: for whom it is.
        total: objects of the key, shown or not.
    """

    format: str
    view: Literal["end_user", "support"]
    by: By
    key: str
    language: Language
    zone: str
    total: int
    objects: tuple[ObjectAnswer, ...]


def ask(connection: Connection, installation: Installation, question: Question) -> Answer | None:
    """Reads everything as of one moment; None where no store knows the key. Raises SchemaMismatch."""
    check(connection, installation)
    schema, limit = installation.schema_name, question.limit
    store = TimelineStore(connection, schema, limit)
    histories = SupportStore(connection, schema, installation.topic_prefix, limit)
    words = catalogue(question.language)
    objects: list[ObjectAnswer] = []
    with one_moment(connection):
        found = store.find(question.key, question.by)
        for object_id in found.object_ids:
            announced = () if question.by == "id" else (Unfinished(object_id, Waiting(), announced=True),)
            for record in store.read(object_id) or announced:
                history = None
                if question.support:
                    movements = store.transactions_from(object_id)
                    history = histories.read(object_id, record, movements, question.language)
                objects.append(ObjectAnswer(page_of(record, words, question.place), history))
    if not objects:
        return None
    return Answer(
        FORMAT,
        "support" if question.support else "end_user",
        question.by,
        question.key,
        question.language,
        str(question.place),
        found.total,
        tuple(objects),
    )
