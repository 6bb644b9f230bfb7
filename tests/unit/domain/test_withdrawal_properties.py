"""Whatever order, however often: what must hold for every stream of deliveries of one withdrawal."""

from collections.abc import Sequence
from itertools import accumulate

from hypothesis import event, given
from hypothesis import strategies as st

from schemas.effects import CompensateReversedFill, RefundUnfilled, ShowProgress
from sinks.domain.chunk_fee import chunk_fee_minor
from sinks.domain.withdrawal_state import WithdrawalDecision, WithdrawalReading
from tests.unit.domain.withdrawal_lives import (
    OVERWRITTEN,
    SET_ONCE,
    Sent,
    deliveries,
    expected_keys,
    first_losses,
    in_order,
    is_closed,
    is_news,
    known,
)
from tests.unit.domain.withdrawal_samples import LEG, WITHDRAWAL_ID, Json, Ledger, sparse


def after(arrivals: Sequence[Sent]) -> Ledger:
    """The withdrawal after the arrivals."""
    ledger = Ledger()
    for sent in arrivals:
        ledger.arrive(sent.reading())
    return ledger


@given(deliveries())
def test_the_row_is_that_of_the_newest_and_of_the_first(arrivals: list[Sent]) -> None:
    """Totals are the last that news told, what is set once is what was told first, and nothing else is in the row."""
    applied = in_order(arrivals)
    ledger = after(arrivals)
    event("a row" if applied else "no row")
    if not applied:
        assert (ledger.state.row, ledger.effects, len(ledger.waiting)) == (None, [], len(arrivals))
        return
    row, last = ledger.row, len(applied) - 1
    highest = max(applied, key=lambda sent: sent.version)
    assert (row.pg_withdrawal_id, row.pg_version, row.status) == (WITHDRAWAL_ID, highest.version, highest.status)
    names = ("amount_total_minor", *OVERWRITTEN, *SET_ONCE)
    told = {name: known(applied, last, name) for name in names}
    assert {name: getattr(row, "our_ref" if name == "merchant_reference" else name) for name in names} == told
    replacements = [sent.lost for sent in applied if sent.lost is not None]
    assert row.replacement_withdrawal_id == (f"wdr_instead_{replacements[-1]}" if replacements else None)


@given(deliveries())
def test_each_effect_goes_out_once_and_none_is_missing(arrivals: list[Sent]) -> None:
    """One key an effect; one-shots once in the order's life, a compensation once a chunk, also from late events."""
    applied, ledger = in_order(arrivals), after(arrivals)
    keys = [effect.dedupe_key for effect in ledger.effects]
    assert sorted(keys) == expected_keys(applied)
    if applied:
        assert ledger.row.closed is is_closed(applied)
        markers = (ledger.row.close_enqueued, ledger.row.refund_enqueued, ledger.row.lock_released)
        names = ("close_withdrawal", "refund_unfilled", "release_user_lock")
        assert markers == tuple(f"withdrawal:{WITHDRAWAL_ID}:{name}" in keys for name in names)


@given(deliveries())
def test_every_fact_is_kept(arrivals: list[Sent]) -> None:
    """Each chunk and each reversal that was told, the first observation of it, and the one marked by the other."""
    applied, ledger = in_order(arrivals), after(arrivals)
    losses = first_losses(applied)
    assert set(ledger.facts.fills) == {f"leg_{sent.filled}" for sent in applied if sent.filled is not None}
    assert {leg: stone.status_snapshot for leg, stone in ledger.facts.tombstones.items()} == {
        f"leg_{leg}": applied[place].status for leg, place in losses.items()
    }
    for leg_ref, fill in ledger.facts.fills.items():
        stone = ledger.facts.tombstones.get(leg_ref)
        assert fill.reversed_at == (None if stone is None else stone.reversed_at)
    assert ledger.state.settled_tombstone is any(applied[place].status == "settled" for place in losses.values())


@given(deliveries())
def test_payloads_are_what_was_known(arrivals: list[Sent]) -> None:
    """Progress, the refund's sums and the ticket, at the moment of their event; versions are the events'."""
    applied, ledger = in_order(arrivals), after(arrivals)
    places: dict[int, int] = {}
    for place, sent in enumerate(applied):
        places.setdefault(sent.version, place)
    for effect in ledger.effects:
        place = places[effect.version]

        def told(name: str, at: int = place) -> int | str | None:
            return known(applied, at, name)

        payload = effect.payload
        if isinstance(payload, CompensateReversedFill):
            assert payload.leg_ref == f"leg_{applied[place].lost}"
            continue
        assert getattr(payload, "ticket", "none") == told("merchant_reference")
        assert is_news(applied, place)
        if isinstance(payload, ShowProgress):
            assert (payload.filled_minor, payload.amount_total_minor) == (
                told("filled_minor"),
                told("amount_total_minor"),
            )
        if isinstance(payload, RefundUnfilled):
            refunded, filled = told("refunded_minor"), told("filled_minor")
            fee, used = told("fee_total_minor"), told("fee_recognized_minor")
            assert payload.refunded_minor == refunded
            assert isinstance(filled, int)
            assert payload.debited_minor == (filled + used if isinstance(used, int) else None)
            if isinstance(fee, int) and isinstance(used, int):
                assert payload.fee_unused_minor == fee - used
                assert payload.release_minor == (refunded + fee - used if isinstance(refunded, int) else None)
            else:
                assert (payload.fee_unused_minor, payload.release_minor) == (None, None)


@given(deliveries())
def test_everything_again_changes_nothing_but_openness(arrivals: list[Sent]) -> None:
    """A resend of all that ever came is silent: no effect, no fact, no total."""
    ledger = after(arrivals)
    effects, facts, row = (
        len(ledger.effects),
        (dict(ledger.facts.fills), dict(ledger.facts.tombstones)),
        ledger.state.row,
    )
    for sent in arrivals if row is not None else []:
        decision = ledger.take(sent.reading())
        assert (decision.verdict, decision.reason, decision.effects) == ("late", "older_version", ())
        assert (decision.fill, decision.tombstone, decision.fill_reversed) == (None, None, None)
    assert len(ledger.effects) == effects
    assert (ledger.facts.fills, ledger.facts.tombstones) == facts
    if row is not None:
        assert ledger.row.pg_version == row.pg_version


@given(deliveries())
def test_a_verdict_follows_the_version_alone(arrivals: list[Sent]) -> None:
    """News advances and all else is late; what a late event leaves of the row is the version's own."""
    ledger = Ledger()
    for place, sent in enumerate(applied := in_order(arrivals)):
        decision: WithdrawalDecision = ledger.take(sent.reading())
        assert decision.verdict == ("advanced" if is_news(applied, place) else "late")
        assert ledger.row.pg_version == max(past.version for past in applied[: place + 1])


@st.composite
def payouts(draw: st.DrawFn) -> tuple[list[int], int, list[WithdrawalReading]]:
    """An order that is paid out in chunks: their amounts, its fee, and all its events, shuffled, some of them twice."""
    amounts = draw(st.lists(st.integers(1, 10**9), min_size=1, max_size=4))
    fee, total = draw(st.integers(0, 10**7)), sum(amounts)
    order: Json = {"amount_total_minor": total, "fee_total_minor": fee, "merchant_reference": "WD-1"}
    events = [sparse(1, "open", "withdrawal.created", **order, filled_minor=0, remaining_minor=total)]
    for number, (amount, filled) in enumerate(zip(amounts, accumulate(amounts), strict=True), start=1):
        status = "open" if number == 1 else "partially_filled"
        remaining = total - filled
        totals: Json = {"filled_minor": filled - amount, "remaining_minor": remaining}
        events.append(sparse(2 * number, status, "withdrawal.matched", **totals))
        share = chunk_fee_minor(fee, total, filled, amount)
        fill: Json = {"leg_ref": f"{LEG}_{number}", "amount_minor": amount, "fee_recognized_minor": share}
        status = "partially_filled" if remaining else "settled"
        totals = {**order, "filled_minor": filled, "remaining_minor": remaining}
        events.append(sparse(2 * number + 1, status, "withdrawal.filled", **totals, fill=fill))
    summary: Json = {**order, "filled_minor": total, "remaining_minor": 0}
    events.append(sparse(2 * len(amounts) + 2, "settled", "withdrawal.settled", **summary))
    twice = draw(st.lists(st.sampled_from(events), max_size=4))
    return amounts, fee, draw(st.permutations(events + twice))


@given(payouts())
def test_a_whole_payout_ends_the_same_in_every_order(payout: tuple[list[int], int, list[WithdrawalReading]]) -> None:
    """The highest version's totals, every chunk, the fee to the satang, and one close."""
    amounts, fee, arrivals = payout
    ledger = Ledger()
    for arrival in arrivals:
        ledger.arrive(arrival)
    row, fills = ledger.row, ledger.facts.fills
    assert (row.pg_version, row.status, row.closed) == (2 * len(amounts) + 2, "settled", True)
    assert (row.filled_minor, row.remaining_minor, row.fee_total_minor, row.our_ref) == (sum(amounts), 0, fee, "WD-1")
    assert sorted(kept.amount_minor for kept in fills.values()) == sorted(amounts)
    assert sum(kept.fee_recognized_minor or 0 for kept in fills.values()) == fee
    assert [effect.name for effect in ledger.effects].count("close_withdrawal") == 1
    assert ledger.waiting == []
    checked = Ledger()
    assert not any(checked.take(arrival).fee_differs for arrival in arrivals if arrival.fill is not None)
