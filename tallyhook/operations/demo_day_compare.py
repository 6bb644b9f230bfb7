"""Where the day of withdrawals came out other than it was written down."""

import http.client
from collections.abc import Iterator, Mapping
from typing import Any

from tallyhook.operations.backfill import Fetched
from tallyhook.operations.demo_day import DayOutcome, Pages, missing_in
from tallyhook.operations.demo_day_story import DayEffect, DayExpectation, DayPage, OrderName, as_decided
from tallyhook.operations.demo_stores import compare_effects
from tallyhook.operations.demo_story import StoryEffect


def compare_day(outcome: DayOutcome, must: DayExpectation) -> list[str]:
    """Every difference, a sentence each; none when all is as it must be."""
    wanted = [_named(effect, outcome.ids[effect.order], outcome.names[effect.order]) for effect in must.effects]
    return [
        *_answers(outcome, must),
        *_gaps(outcome, must),
        *_verdicts(outcome, must),
        *compare_effects(outcome.effects, wanted),
        *(sentence for name, page in must.pages.items() for sentence in _pages(name, outcome.pages[name], page)),
        *(f"the tables after the backfill: {sentence}" for sentence in outcome.ends),
    ]


def _answers(outcome: DayOutcome, must: DayExpectation) -> Iterator[str]:
    if outcome.statuses != {http.client.OK: must.posts}:
        yield f"answers: {dict(outcome.statuses)} instead of {must.posts} x {int(http.client.OK)}"


def _gaps(outcome: DayOutcome, must: DayExpectation) -> Iterator[str]:
    before, after = missing_in(outcome.before), missing_in(outcome.after)
    if before != {outcome.missing}:
        yield f"gaps before the backfill: {sorted(before)} instead of [{outcome.missing}]"
    if after:
        yield f"gaps after the backfill: {sorted(after)} instead of none"
    fetched = [(one.sequence, one.fate) for one in outcome.told if isinstance(one, Fetched)]
    if fetched != [(outcome.missing, "published")]:
        yield f"backfill: {fetched} instead of the one event {outcome.missing}, published"
    records = [one.record for one in outcome.told if isinstance(one, Fetched) and one.record is not None]
    event_ids = [record.event_id for record in records]
    wanted = outcome.names["three chunks"][f"v{must.missing}"]
    if event_ids != [wanted]:
        yield f"backfill: it fetched {event_ids} instead of {wanted}, version {must.missing} of the order"


def _verdicts(outcome: DayOutcome, must: DayExpectation) -> Iterator[str]:
    got = [as_decided(one) for one in outcome.verdicts]
    wanted = [as_decided(one) for one in must.deliveries]
    if got != wanted:
        yield f"deliveries of the order of three chunks: {got} instead of {wanted}"


def _pages(name: OrderName, pages: Pages, must: DayPage) -> Iterator[str]:
    for page, status in ((pages.thai, must.thai), (pages.english, must.english)):
        texts = [line.text for line in page.lines if line.role == "status"]
        if texts != [status]:
            yield f"timeline of the {name} order in {page.language}: its status is {texts} instead of {status}"
        chunks = sum(1 for line in page.lines if line.role == "fill")
        if chunks != must.chunks:
            yield f"timeline of the {name} order in {page.language}: {chunks} chunks instead of {must.chunks}"


def _named(effect: DayEffect, object_id: str, names: Mapping[str, str]) -> StoryEffect:
    payload: dict[str, Any] = {
        member: value.format_map(names) if isinstance(value, str) else value for member, value in effect.payload.items()
    }
    return StoryEffect(effect.effect, object_id, effect.dedupe_key.format_map(names), payload)
