"""The demo's day of withdrawals: what was written down by hand fits the simulator's world, and every slip is told."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from sinks.domain.sequences import Span
from tallyhook.operations.backfill import Fetched, Unlisted
from tallyhook.operations.backfilled import Backfilled
from tallyhook.operations.demo_day import DayOutcome, DayVerdict
from tallyhook.operations.demo_day import Pages as DayPages
from tallyhook.operations.demo_day_compare import compare_day
from tallyhook.operations.demo_day_story import (
    EXPECTED,
    GUIDE,
    MERCHANT_ID,
    REPEATS,
    DayExpectation,
    OrderName,
    arrivals,
    day,
    missing_of,
    names_of,
    orders_of,
)
from tallyhook.operations.demo_stores import ReadEffect
from tallyhook.operations.gaps import Counted, Gap, Gaps
from tallyhook.operations.timeline.catalogue import Language
from tallyhook.operations.timeline.page import Line, Page

WORLD = day()
IDS = orders_of(WORLD)
NAMES = {name: names_of(WORLD, object_id) for name, object_id in IDS.items()}
AT = datetime(2026, 8, 21, tzinfo=UTC)


def test_what_is_posted_is_the_day() -> None:
    """Every event that is delivered, ten of them twice, shuffled; the day's first one is the first."""
    line = arrivals(WORLD)
    counted = Counter(event.id for event in line)
    assert set(counted) == {event.id for event in WORLD.events if not event.never_delivered}
    assert sorted(counted.values(), reverse=True)[: REPEATS + 1] == [2] * REPEATS + [1]
    assert len(line) == EXPECTED.posts
    assert line[0] == WORLD.events[0]
    assert [event.sequence for event in line] != sorted(event.sequence for event in line)
    assert arrivals(day()) == line


def test_the_hole_can_be_seen() -> None:
    """It lies between numbers that come, and it is the second chunk of the guide's order."""
    missing = missing_of(WORLD)
    assert WORLD.events[0].sequence < missing.sequence < WORLD.events[-1].sequence
    assert (missing.object_id, missing.version) == (IDS["three chunks"], EXPECTED.missing)
    assert {event.sequence for event in WORLD.events} == set(
        range(WORLD.events[0].sequence, WORLD.events[-1].sequence + 1)
    )


def test_the_deliveries_are_those_of_the_order_of_arrival() -> None:
    """The versions as they are posted, the missing one last."""
    posted = [event.version for event in arrivals(WORLD) if event.object_id == IDS["three chunks"]]
    assert [delivery.version for delivery in EXPECTED.deliveries] == [*posted, EXPECTED.missing]
    seen: set[int] = set()
    for delivery in EXPECTED.deliveries:
        assert (delivery.verdict == "redelivered") == (delivery.version in seen)
        seen.add(delivery.version)


def test_in_order_the_guide_counts_two_four_and_one() -> None:
    """update_local_status twice, show_progress four times, close_withdrawal once, nothing for the summary."""
    counted = Counter(event.effect for event in GUIDE)
    assert counted == {"update_local_status": 2, "show_progress": 4, "close_withdrawal": 1, None: 1}
    events = [event for event in WORLD.events if event.object_id == IDS["three chunks"]]
    assert [(event.version, event.type) for event in events] == [(event.version, event.type) for event in GUIDE]


def test_no_effect_is_written_down_that_the_simulator_forbids() -> None:
    """Each has the key and the payload that the simulator knows; each that is certain is there."""
    allowed = {
        effect.dedupe_key: effect
        for withdrawal in WORLD.expected_complete.withdrawals.values()
        for effect in withdrawal.effects
    }
    written = {effect.dedupe_key: effect for effect in read_effects(EXPECTED)}
    assert len(written) == len(EXPECTED.effects)
    for key, effect in written.items():
        assert (effect.effect, effect.payload) == (allowed[key].effect, dict(allowed[key].payload))
    assert {key for key, effect in allowed.items() if effect.certain} <= set(written)


def read_effects(expected: DayExpectation) -> list[ReadEffect]:
    """The effects as they would be read."""
    found = []
    for number, effect in enumerate(expected.effects):
        names = NAMES[effect.order]
        payload = {
            name: value.format_map(names) if isinstance(value, str) else value for name, value in effect.payload.items()
        }
        key = effect.dedupe_key.format_map(names)
        found.append(ReadEffect(effect.effect, IDS[effect.order], key, payload, "evt", 0, number))
    return found


def gaps(*missing: int) -> Gaps:
    """Open gaps of one number each."""
    opened = [Gap(MERCHANT_ID, number, number, AT, 0.0, "normal", None, None, None) for number in missing]
    none = Counted(0, 0)
    head = {MERCHANT_ID: Span(WORLD.events[0].sequence, WORLD.events[-1].sequence)}
    return Gaps(opened, len(missing), Counted(len(missing), len(missing)), none, none, head, kept=True)


def page(name: OrderName, language: Language) -> Page:
    """A page that says what it must."""
    must = EXPECTED.pages[name]
    lines = [Line("status", must.thai if language == "th" else must.english)]
    lines += [Line("fill", f"chunk {number}") for number in range(must.chunks)]
    return Page(IDS[name], "withdrawal_order", "settled", language, "UTC", tuple(lines))


def fetched(sequence: int, event_id: str) -> Fetched:
    """A published event of the gateway's list."""
    record = Backfilled("events", "t.events", b"k", b"{}", [], event_id, "withdrawal.filled", IDS["three chunks"])
    return Fetched(sequence, "published", record)


def perfect() -> DayOutcome:
    """A day as it must be."""
    missing = missing_of(WORLD)
    return DayOutcome(
        ids=IDS,
        names=NAMES,
        missing=missing.sequence,
        before=gaps(missing.sequence),
        after=gaps(),
        statuses=Counter({200: EXPECTED.posts}),
        told=[fetched(missing.sequence, missing.id)],
        verdicts=[DayVerdict(one.version, one.verdict, one.reason, one.effect) for one in EXPECTED.deliveries],
        ends=[],
        effects=read_effects(EXPECTED),
        pages={name: DayPages(page(name, "th"), page(name, "en")) for name in IDS},
    )


def test_a_day_as_it_must_be_has_no_differences() -> None:
    """Otherwise the tests below would prove nothing."""
    assert compare_day(perfect(), EXPECTED) == []


def _with(**changes: Any) -> Callable[[DayOutcome], DayOutcome]:
    return lambda outcome: replace(outcome, **changes)


def _paid_twice(outcome: DayOutcome) -> DayOutcome:
    refund = next(effect for effect in outcome.effects if effect.effect == "refund_unfilled")
    return replace(outcome, effects=[*outcome.effects, refund])


def _never_compensated(outcome: DayOutcome) -> DayOutcome:
    return replace(outcome, effects=[one for one in outcome.effects if one.effect != "compensate_reversed_fill"])


def _other_release(outcome: DayOutcome) -> DayOutcome:
    changed = [
        replace(one, payload=one.payload | {"release_minor": 30_000}) if one.effect == "refund_unfilled" else one
        for one in outcome.effects
    ]
    return replace(outcome, effects=changed)


def _closed_although_recalled(outcome: DayOutcome) -> DayOutcome:
    object_id, names = outcome.ids["recalled"], outcome.names["recalled"]
    payload = {"withdrawal_id": object_id, "ticket": names["ticket"]}
    key = f"withdrawal:{object_id}:close_withdrawal"
    return replace(
        outcome, effects=[*outcome.effects, ReadEffect("close_withdrawal", object_id, key, payload, "evt", 0, 99)]
    )


def _a_chunk_is_lost(outcome: DayOutcome) -> DayOutcome:
    pages = outcome.pages["three chunks"]
    shorter = replace(pages.thai, lines=pages.thai.lines[:-1])
    return replace(outcome, pages=outcome.pages | {"three chunks": DayPages(shorter, pages.english)})


def _english_in_the_thai_column(outcome: DayOutcome) -> DayOutcome:
    english = outcome.pages["half filled"].english
    return replace(outcome, pages=outcome.pages | {"half filled": DayPages(english, english)})


def _late_was_applied(outcome: DayOutcome) -> DayOutcome:
    last = replace(outcome.verdicts[-1], verdict="advanced", effect="show_progress")
    return replace(outcome, verdicts=[*outcome.verdicts[:-1], last])


FAULTS: dict[str, tuple[Callable[[DayOutcome], DayOutcome], str]] = {
    "one was refused": (_with(statuses=Counter({200: EXPECTED.posts - 1, 503: 1})), "answers: {200: 61, 503: 1}"),
    "the gap was not seen": (_with(before=gaps()), "gaps before the backfill: [] instead of"),
    "another gap": (_with(before=gaps(91_002)), "gaps before the backfill: [91002]"),
    "the gap stayed open": (_with(after=gaps(missing_of(WORLD).sequence)), "gaps after the backfill"),
    "the gap was given up": (_with(told=[Unlisted(Span(91_017, 91_017), done=True)]), "backfill: [] instead of"),
    "another event was fetched": (
        _with(told=[fetched(missing_of(WORLD).sequence, "evt_other")]),
        "it fetched ['evt_other']",
    ),
    "paid twice": (_paid_twice, "effect too many, or other than it must be: ('refund_unfilled'"),
    "never compensated": (_never_compensated, "effect missing: ('compensate_reversed_fill'"),
    "the fee is kept": (_other_release, "effect missing: ('refund_unfilled'"),
    "closed although recalled": (_closed_although_recalled, "effect too many, or other than it must be: ('close_"),
    "a chunk is lost": (_a_chunk_is_lost, "three chunks order in th: 2 chunks instead of 3"),
    "the wrong language": (_english_in_the_thai_column, "half filled order in en: its status is"),
    "a late event was applied": (_late_was_applied, "deliveries of the order of three chunks"),
    "the tables differ": (_with(ends=["Withdrawal x: y."]), "the tables after the backfill: Withdrawal x: y."),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_told(name: str) -> None:
    """A comparison that cannot fail proves nothing."""
    fault, sentence = FAULTS[name]
    found = compare_day(fault(perfect()), EXPECTED)
    assert any(sentence in difference for difference in found), found
