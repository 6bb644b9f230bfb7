"""Decisions on deposits: the version guard, money once, and what each status shows."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from schemas.effects import (
    Effect,
    EffectName,
    FailOrder,
    HoldGoods,
    ReleaseGoods,
    ShowLateSlip,
    ShowPendingReview,
    UpdateOrderStatus,
)
from schemas.events import DepositEvent
from sinks.domain.body import read_text
from sinks.domain.decision import Credit, EffectDraft, EntryDraft, Refusal
from sinks.domain.deposits import decide, parse
from tests.unit.domain.samples import (
    AMOUNTS,
    DEPOSIT_ID,
    FLAG,
    ORDER_ID,
    USER_ID,
    body,
    credited,
    decided,
    event,
    fresh,
)

UNTIL = "2026-07-02T10:04:41.000+07:00"
NOTE = "สลิปไม่ชัด 😿 é"


def status_effect(name: EffectName, payload: Effect, version: int = 3) -> EffectDraft:
    """An effect that is keyed by its event."""
    return EffectDraft(name, f"evt_{version}:{name}", payload, version)


@pytest.mark.parametrize(
    ("status", "fields", "name", "payload"),
    [
        ("open", {}, "update_order_status", UpdateOrderStatus(ORDER_ID, "open")),
        ("slip_received", {}, "update_order_status", UpdateOrderStatus(ORDER_ID, "slip_received")),
        ("a_status_of_tomorrow", {}, "update_order_status", UpdateOrderStatus(ORDER_ID, "a_status_of_tomorrow")),
        ("Settled", {}, "update_order_status", UpdateOrderStatus(ORDER_ID, "Settled")),
        (
            "under_review",
            {"review": {"reasons": [{"display_th": NOTE, "display_en": "x"}, {"display_th": "second"}]}},
            "show_pending_review",
            ShowPendingReview(ORDER_ID, NOTE),
        ),
        ("rejected", {"rejection": {"display_th": NOTE}}, "fail_order", FailOrder(ORDER_ID, NOTE)),
        ("rejected", {"cancel_reason_code": "other"}, "fail_order", FailOrder(ORDER_ID, None)),
    ],
)
def test_each_status_shows_its_effect(
    status: str, fields: dict[str, object], name: EffectName, payload: Effect
) -> None:
    """The row advances, one effect goes out under the event's key, and no money moves."""
    given = event(3, status, **fields)
    decision = decided(fresh(), given)
    assert (decision.verdict, decision.reason, decision.entries) == ("advanced", None, ())
    assert decision.effects == (status_effect(name, payload),)
    assert (decision.state.version, decision.state.snapshot) == (3, given)
    assert (decision.state.credit, decision.state.reversed, decision.flag) == (None, False, None)


@pytest.mark.parametrize("status", ["expired", "canceled"])
@pytest.mark.parametrize(
    ("fields", "name", "payload"),
    [
        (
            {"is_terminal": False, "late_slip_accepted_until": UNTIL, "cancel_reason_code": "no_slip"},
            "show_late_slip",
            ShowLateSlip(ORDER_ID, UNTIL),
        ),
        ({"is_terminal": False, "late_slip_accepted_until": None}, "fail_order", FailOrder(ORDER_ID, "expired")),
        ({"is_terminal": False}, "fail_order", FailOrder(ORDER_ID, "expired")),
        ({"is_terminal": True, "late_slip_accepted_until": UNTIL}, "fail_order", FailOrder(ORDER_ID, "expired")),
        ({"is_terminal": None, "late_slip_accepted_until": UNTIL}, "fail_order", FailOrder(ORDER_ID, "expired")),
        ({"late_slip_accepted_until": UNTIL}, "fail_order", FailOrder(ORDER_ID, "expired")),
        ({"is_terminal": True, "cancel_reason_code": "user_left"}, "fail_order", FailOrder(ORDER_ID, "user_left")),
        ({"is_terminal": True, "cancel_reason_code": ""}, "fail_order", FailOrder(ORDER_ID, "")),
        ({"cancel_reason_code": None}, "fail_order", FailOrder(ORDER_ID, "expired")),
    ],
)
def test_the_end_is_no_end_while_a_late_slip_is_accepted(
    status: str, fields: dict[str, object], name: EffectName, payload: Effect
) -> None:
    """Only a literal false with a date keeps the order open; the date is passed on as it was sent."""
    assert decided(fresh(), event(3, status, **fields)).effects == (status_effect(name, payload),)


@pytest.mark.parametrize(
    "review",
    [
        None,
        [],
        {},
        {"reasons": []},
        {"reasons": None},
        {"reasons": {}},
        {"reasons": {"0": {"display_th": "x"}}},
        {"reasons": 5},
        {"reasons": ["text"]},
        {"reasons": [{}]},
        {"reasons": [{"display_th": None}]},
        {"reasons": [{"display_th": 5}, {"display_th": "second"}]},
        {"reasons": [{"display_en": "only English"}]},
        "text",
        7,
    ],
)
def test_a_review_without_its_text_shows_null(review: object) -> None:
    """Whatever shape comes instead, the row advances and the effect goes out."""
    decision = decided(fresh(), event(3, "under_review", review=review))
    assert decision.effects == (status_effect("show_pending_review", ShowPendingReview(ORDER_ID, None)),)


def test_a_review_that_is_absent_shows_null() -> None:
    """The member may be missing altogether."""
    decision = decided(fresh(), event(3, "under_review"))
    assert decision.effects == (status_effect("show_pending_review", ShowPendingReview(ORDER_ID, None)),)


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" * 1_000, "0." + "1" * 900])
def test_a_number_that_no_double_holds_stops_nothing(number: str) -> None:
    """PostgreSQL keeps it and no rule reads it, so the texts beside it are read all the same."""
    for status, fields, effect in (
        ("under_review", {"review": {"reasons": [{"n": 7, "display_th": NOTE}]}}, ShowPendingReview(ORDER_ID, NOTE)),
        ("rejected", {"rejection": {"n": 7, "display_th": NOTE}}, FailOrder(ORDER_ID, NOTE)),
    ):
        raw = body(3, status, **fields).replace(b'"n": 7', b'"n": ' + number.encode())
        assert read_text(raw) == raw.decode()
        parsed = parse(raw)
        assert isinstance(parsed, DepositEvent)
        assert [draft.payload for draft in decided(fresh(), parsed).effects] == [effect]


@pytest.mark.parametrize(
    "rejection", [None, [], {}, {"display_th": None}, {"display_th": [1]}, {"display_th": 1.5}, {"display_en": "x"}, 1]
)
def test_a_rejection_without_its_text_has_no_reason(rejection: object) -> None:
    """Likewise."""
    decision = decided(fresh(), event(3, "rejected", rejection=rejection))
    assert decision.effects == (status_effect("fail_order", FailOrder(ORDER_ID, None)),)


def test_settled_credits_what_was_received_and_releases() -> None:
    """Not what lands in the merchant's wallet: 500,000 received, 492,500 credited to the merchant."""
    decision = decided(fresh(), event(9, "settled"))
    assert decision.entries == (EntryDraft(f"deposit:{DEPOSIT_ID}:credit", USER_ID, 500_000),)
    assert decision.effects == (
        EffectDraft(
            "release_goods", f"deposit:{DEPOSIT_ID}:release_goods", ReleaseGoods(ORDER_ID, False, 500_000, 500_000), 9
        ),
    )
    assert (decision.verdict, decision.reason) == ("advanced", None)
    assert (decision.state.credit, decision.state.reversed) == (Credit(USER_ID, 500_000), False)


@pytest.mark.parametrize(
    ("partial", "expected"), [(True, True), (False, False), (None, False), ("true", False), (1, False), ([], False)]
)
def test_partial_is_only_a_literal_true(partial: object, expected: bool) -> None:
    """Part of the amount: ordered 100, transferred and received 90."""
    amounts = {**AMOUNTS, "ordered_amount_minor": 600_000, "partial": partial}
    (effect,) = decided(fresh(), event(9, "settled", **amounts)).effects
    assert effect.payload == ReleaseGoods(ORDER_ID, expected, 500_000, 600_000)


def test_partial_may_be_absent() -> None:
    """Then the order was paid in full."""
    (effect,) = decided(fresh(), event(9, "settled")).effects
    assert effect.payload == ReleaseGoods(ORDER_ID, False, 500_000, 500_000)


def test_a_settlement_after_the_credit_shows_nothing_again() -> None:
    """A later version that is still settled takes the row's values and moves no money."""
    given = event(12, "settled", balance_transaction_id="btxn_1")
    decision = decided(credited(), given)
    assert (decision.verdict, decision.reason) == ("advanced", "already_credited")
    assert (decision.effects, decision.entries) == ((), ())
    assert (decision.state.version, decision.state.snapshot) == (12, given)
    assert decision.state.credit == Credit(USER_ID, 500_000)


def test_a_reversal_takes_back_the_credit_and_holds_the_goods() -> None:
    """Once, under the deposit's key."""
    decision = decided(credited(), event(12, "reversed"))
    assert decision.entries == (EntryDraft(f"deposit:{DEPOSIT_ID}:debit", USER_ID, -500_000),)
    assert decision.effects == (EffectDraft("hold_goods", f"deposit:{DEPOSIT_ID}:hold_goods", HoldGoods(ORDER_ID), 12),)
    assert (decision.verdict, decision.reason, decision.reversal_differs) == ("advanced", None, False)
    assert (decision.state.reversed, decision.state.credit) == (True, Credit(USER_ID, 500_000))


@pytest.mark.parametrize("credit", [(400_000, USER_ID), (500_000, "usr_former")])
def test_a_reversal_debits_the_credit_and_not_its_own_snapshot(credit: tuple[int, str]) -> None:
    """Whose money came is whose money goes, in the amount that came; the difference is told."""
    amount_minor, user_id = credit
    decision = decided(credited(9, amount_minor, user_id), event(12, "reversed"))
    assert decision.entries == (EntryDraft(f"deposit:{DEPOSIT_ID}:debit", user_id, -amount_minor),)
    assert decision.reversal_differs


def test_a_reversal_that_comes_first_emits_nothing() -> None:
    """There is nothing to take back; the row is kept all the same."""
    decision = decided(fresh(), event(12, "reversed"))
    assert (decision.verdict, decision.reason) == ("advanced", "never_credited")
    assert (decision.effects, decision.entries, decision.reversal_differs) == ((), (), False)
    assert (decision.state.version, decision.state.credit, decision.state.reversed) == (12, None, False)


def test_a_newer_settlement_after_a_lonely_reversal_credits() -> None:
    """The deposit was never credited, and its newest state is settled."""
    state = decided(fresh(), event(12, "reversed")).state
    decision = decided(state, event(13, "settled"))
    assert [entry.amount_minor for entry in decision.entries] == [500_000]
    assert [effect.name for effect in decision.effects] == ["release_goods"]


def test_a_second_reversal_debits_nothing() -> None:
    """Once reversed, never again."""
    state = decided(credited(), event(12, "reversed")).state
    decision = decided(state, event(14, "reversed"))
    assert (decision.verdict, decision.reason) == ("advanced", "already_reversed")
    assert (decision.effects, decision.entries) == ((), ())
    assert decision.state.version == 14


def test_a_settlement_after_a_reversal_is_not_credited_again() -> None:
    """Neither with the credit at hand nor where only the reversal is known."""
    state = decided(credited(), event(12, "reversed")).state
    for known in (state, replace(state, credit=None)):
        decision = decided(known, event(15, "settled"))
        assert (decision.reason, decision.effects, decision.entries) == ("already_credited", (), ())


@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("status", ["settled", "reversed", "expired", "under_review", "rejected", "open"])
def test_what_is_not_newer_changes_nothing(version: int, status: str) -> None:
    """Older and equal versions: no effect, no entry, the same state."""
    state = decided(fresh(), event(9, "slip_received")).state
    decision = decided(state, event(version, status))
    assert (decision.verdict, decision.reason) == ("late", "older_version")
    assert (decision.effects, decision.entries, decision.flag) == ((), (), None)
    assert decision.state is state


def test_the_same_event_twice_does_nothing_the_second_time() -> None:
    """The guard alone holds it, without an inbox."""
    once = decided(fresh(), event(9, "settled"))
    twice = decided(once.state, event(9, "settled"))
    assert (twice.state, twice.effects, twice.entries) == (once.state, (), ())


def test_version_zero_creates_the_row() -> None:
    """Zero is above nothing."""
    decision = decided(fresh(), event(0, "open"))
    assert (decision.verdict, decision.state.version) == ("advanced", 0)


@pytest.mark.parametrize("version", [3, 12])
def test_a_flag_is_kept_from_new_and_late_events_alike(version: int) -> None:
    """The fact is older than the guard: it is kept with the version that carried it."""
    decision = decided(credited(9), event(version, "settled", overpayment=FLAG))
    assert decision.verdict == ("late" if version < 9 else "advanced")
    assert decision.flag is not None
    assert (decision.flag.pg_deposit_id, decision.flag.observed_deposit_version) == (DEPOSIT_ID, version)
    assert decision.flag.slip_received_at == datetime(2026, 7, 1, 10, 31, tzinfo=UTC)


@pytest.mark.parametrize("status", ["settled", "reversed", "expired", "open", "under_review", "rejected"])
def test_every_status_keeps_its_flag(status: str) -> None:
    """On each way through the decision, credited before or not."""
    for state in (fresh(), credited(), decided(credited(), event(12, "reversed")).state):
        flag = decided(state, event(20, status, overpayment=FLAG)).flag
        assert flag is not None
        assert flag.flag.claim_id == "clm_7"


@pytest.mark.parametrize("version", [3, 12])
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"amount_received_minor": 0}, "money_rule"),
        ({"late_slip_accepted_until": "soon"}, "body_date"),
        ({"overpayment": {**FLAG, "amount_minor": 0}}, "overpayment_shape"),
    ],
)
def test_an_event_that_breaks_a_rule_is_refused_whole(version: int, fields: dict[str, object], reason: str) -> None:
    """Late ones too, and there is no way to money that goes round the rules."""
    refused = decide(credited(9), event(version, "settled", **fields))
    assert isinstance(refused, Refusal)
    assert refused.reason == reason
