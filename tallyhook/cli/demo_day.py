"""Shows how the demo's day of withdrawals went."""

import orjson

from tallyhook.cli.backfill import Report
from tallyhook.cli.columns import beside
from tallyhook.cli.escaping import escaped
from tallyhook.cli.gaps import print_gaps
from tallyhook.cli.output import console, print_table
from tallyhook.operations.demo_day import DayOutcome, Pages
from tallyhook.operations.demo_day_story import GUIDE, MERCHANT_ID, DayExpectation, as_decided
from tallyhook.operations.timeline.clock_words import DEFAULT_ZONE


def show_day(outcome: DayOutcome, must: DayExpectation, differences: list[str]) -> None:
    """Answers, gaps, effects and pages; then whether all is as it must be."""
    answers = ", ".join(f"{count} x {status or 'no answer'}" for status, count in sorted(outcome.statuses.items()))
    _say(f"answers: {answers}")
    _say(f"\n$ tallyhook gaps --merchant {MERCHANT_ID}")
    print_gaps(outcome.before)
    _say(f"\n$ tallyhook backfill --gaps --merchant {MERCHANT_ID}")
    report = Report(False, dry_run=False)
    for told in outcome.told:
        report.tell(told)
    report.end()
    _say(f"\n$ tallyhook gaps --merchant {MERCHANT_ID}")
    print_gaps(outcome.after)
    _show_deliveries(outcome, must)
    _show_effects(outcome)
    _show_refund(outcome)
    for name, pages in outcome.pages.items():
        _show_pages(name, pages)
    _say("")
    if differences:
        _say("This is NOT what must come of it:")
        for difference in differences:
            _say(f"  {escaped(difference)}")
    else:
        _say(
            "All as expected: the gap is closed, each effect of a withdrawal came once, the recalled order was"
            " compensated and never closed, and the tables hold what the simulator says they must."
        )


def _show_deliveries(outcome: DayOutcome, must: DayExpectation) -> None:
    """What came of the guide's eight events here, beside what comes of them in order."""
    in_order = {event.version: event for event in GUIDE}
    notes = {as_decided(delivery): delivery.note for delivery in must.deliveries}
    rows = []
    for played in outcome.verdicts:
        guide = in_order[played.version]
        note = notes.get(as_decided(played), "other than it must be")
        row = (f"v{played.version}", guide.type, guide.effect or "-", played.verdict, played.effect or "-", note)
        rows.append(row)
    _say("")
    print_table(
        "The order of three chunks: the guide's eight events, in the order of their arrival",
        ("version", "event", "effect, all in order", "verdict here", "effect here", "why"),
        rows,
    )
    _say("Certain in every order: close_withdrawal, once. The others come for what was news on arrival.")


def _show_effects(outcome: DayOutcome) -> None:
    names = {object_id: name for name, object_id in outcome.ids.items()}
    places = {object_id: place for place, object_id in enumerate(names)}
    found = sorted(outcome.effects, key=lambda effect: (places[effect.subject], effect.partition, effect.number))
    _say("")
    print_table(
        "Effects of the withdrawals, as a plain read_committed consumer reads them",
        ("order", "effect", "dedupe key (ce_id)", "payload"),
        [(names[e.subject], e.effect, e.dedupe_key, orjson.dumps(e.payload).decode()) for e in found],
    )


def _show_refund(outcome: DayOutcome) -> None:
    """The half-filled expiry in satang."""
    _say("")
    for effect in outcome.effects:
        if effect.effect == "refund_unfilled":
            told = {name: f"{value:,}" for name, value in effect.payload.items() if isinstance(value, int)}
            _say(
                "Half filled and expired: {release_minor} satang go back ({refunded_minor} not transferred and"
                " {fee_unused_minor} of the fee), {debited_minor} stay debited.".format_map(told)
            )


def _show_pages(name: str, pages: Pages) -> None:
    """Thai beside English, under the commands that print them."""
    object_id = pages.thai.object_id
    commands = [f"$ tallyhook timeline {object_id}", f"$ tallyhook timeline {object_id} --lang en --tz UTC"]
    thai, english = ([escaped(text) for text in page.texts()] for page in (pages.thai, pages.english))
    _say("")
    _say(f"The {name} order as its end user sees it: in Thai in {DEFAULT_ZONE} (as by default), in English in UTC")
    for line in beside([commands[0], *thai], [commands[1], *english], console.width if console.is_terminal else None):
        _say(line)


def _say(text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
