"""What must come of a deposit's events, by the gateway's worked examples."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from tallyhook.operations.audit.deposits import Deposit
from tallyhook.operations.audit.expected import Entry, judge_without_rules
from tallyhook.operations.audit.stored_event import InboxEvent

MONEY = {
    "ordered_amount_minor": 500,
    "transferred_amount_minor": 450,
    "amount_received_minor": 450,
    "fee_total_minor": 7,
    "credited_amount_minor": 443,
}
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def event(
    version: int,
    status: str,
    members: Mapping[str, object] | None = None,
    *,
    verdict: str = "advanced",
    parked: bool = False,
) -> InboxEvent:
    """The event of a version of `dep`; settled and reversed ones have the five amounts."""
    o: dict[str, object] = {"id": "dep", "object": "deposit_order", "version": version, "status": status}
    o |= (MONEY if status in ("settled", "reversed") else {}) | dict(members or {})
    raw = json.dumps({"id": f"evt_{version}", "data": {"object": o}})
    at = None if parked else NOW
    return InboxEvent(f"evt_{version}", raw, 3, version, verdict, None, at, "deposit_order", version)


def life(*events: InboxEvent) -> Deposit:
    """A deposit after these events."""
    made = Deposit("dep", "ord", "usr")
    made.apply_all(events)
    return made


def outcome(deposit: Deposit) -> list[tuple[str, str | None]]:
    """Verdict and reason of each event."""
    return [(judgement.verdict, judgement.reason) for judgement in deposit.outcome.judgements]


def keys(deposit: Deposit) -> list[str]:
    """The dedupe keys of the effects in order."""
    return [effect.dedupe_key for effect in deposit.outcome.effects]


def test_an_expiry_after_a_newer_settlement_does_nothing() -> None:
    """Example A: settled v9, then expired v6."""
    deposit = life(event(9, "settled"), event(6, "expired"))
    assert outcome(deposit) == [("advanced", None), ("late", "older_version")]
    assert keys(deposit) == ["deposit:dep:credit", "deposit:dep:release_goods"]
    assert deposit.entries == [Entry("deposit:dep:credit", "usr", 450, "evt_9")]
    assert deposit.outcome.effects[1].payload == {"order_id": "ord", "partial": False, "received": 450, "ordered": 500}


def test_a_settlement_after_a_newer_reversal_credits_nothing() -> None:
    """Example B: reversed v12, then settled v9."""
    deposit = life(event(12, "reversed"), event(9, "settled"))
    assert outcome(deposit) == [("advanced", "never_credited"), ("late", "older_version")]
    assert (deposit.entries, deposit.outcome.effects) == ([], [])


def test_a_deposit_is_credited_once_and_debited_once() -> None:
    """Again settled, again reversed: reasons, and the debit repeats the credit whatever its own amounts."""
    other = {"ordered_amount_minor": 400, "transferred_amount_minor": 400, "amount_received_minor": 400}
    other |= {"fee_total_minor": 0, "credited_amount_minor": 400}
    deposit = life(
        event(1, "settled", {"partial": True}),
        event(2, "settled", other),
        event(3, "reversed", other),
        event(4, "reversed"),
        event(5, "settled"),
    )
    assert [reason for _, reason in outcome(deposit)] == [
        *(None, "already_credited", None, "already_reversed", "already_credited")
    ]
    assert [entry.amount_minor for entry in deposit.entries] == [450, -450]
    assert keys(deposit) == [
        *("deposit:dep:credit", "deposit:dep:release_goods", "deposit:dep:debit", "deposit:dep:hold_goods")
    ]
    assert deposit.version == 5


@pytest.mark.parametrize(
    ("status", "members", "topic", "payload"),
    [
        ("expired", {"is_terminal": False, "late_slip_accepted_until": "T"}, "show_late_slip", {"until": "T"}),
        ("expired", {"is_terminal": True, "late_slip_accepted_until": "T"}, "fail_order", {"reason": "expired"}),
        ("expired", {"late_slip_accepted_until": "T"}, "fail_order", {"reason": "expired"}),
        ("canceled", {"cancel_reason_code": ""}, "fail_order", {"reason": ""}),
        ("under_review", {"review": {"reasons": [{"display_th": "รอ"}, {}]}}, "show_pending_review", {"message": "รอ"}),
        ("under_review", {"review": {"reasons": []}}, "show_pending_review", {"message": None}),
        ("under_review", {"review": [1]}, "show_pending_review", {"message": None}),
        ("rejected", {"rejection": {"display_th": "ไม่ผ่าน"}}, "fail_order", {"reason": "ไม่ผ่าน"}),
        ("rejected", {}, "fail_order", {"reason": None}),
        ("brand_new", {}, "update_order_status", {"status": "brand_new"}),
    ],
)
def test_statuses_and_their_effects(
    status: str, members: dict[str, object], topic: str, payload: dict[str, object]
) -> None:
    """One effect each, keyed by the event."""
    (effect,) = life(event(4, status, members)).outcome.effects
    assert (effect.topic, effect.dedupe_key, effect.version) == (topic, f"evt_4:{topic}", 4)
    assert effect.payload == {"order_id": "ord"} | payload


def test_flags_are_kept_from_late_events_and_the_first_stays() -> None:
    """The version that carried a claim first in the order of arrival."""
    deposit = life(
        event(5, "open", {"overpayment": {"claim_id": "b"}}),
        event(2, "open", {"overpayment": {"claim_id": "a"}}),
        event(6, "open", {"overpayment": {"claim_id": "a"}}),
    )
    assert {claim: seen.version for claim, seen in deposit.flags.items()} == {"b": 5, "a": 2}


def test_what_waits_is_not_applied_and_what_is_unreadable_is_told() -> None:
    """A parked event does nothing; an event that breaks the money rule had to be quarantined."""
    deposit = life(event(1, "settled", parked=True), event(2, "settled", {"fee_total_minor": 8}), event(3, "open"))
    assert outcome(deposit) == [("advanced", None)]
    assert [(failed.event_id, "money rule" in why) for failed, why in deposit.outcome.unreadable] == [("evt_2", True)]


def test_a_kind_without_rules_does_nothing() -> None:
    """Recorded, `advanced` with a version and `immutable` without; one that waits is not judged."""
    rows = [InboxEvent("e", "", 0, n, "x", None, NOW, "payout_batch", v) for n, v in enumerate((1, None))]
    rows.append(InboxEvent("e", "", 0, 2, "x", None, None, "payout_batch", None))
    made = judge_without_rules(rows)
    assert [(judgement.verdict, judgement.reason) for judgement in made.judgements] == [
        *(("advanced", "no_handler"), ("immutable", "no_handler"))
    ]
    assert made.effects == []


def test_an_imported_deposit_goes_on_from_where_it_was() -> None:
    """What the handler before had credited is credited no more, and can be taken back; older versions are late."""
    credit = Entry("deposit:dep:credit", "usr", 440, "import:old")
    made = Deposit("dep", "ord", "usr", credit=credit, version=5, snapshot={"status": "settled"})
    made.apply_all([event(4, "open"), event(6, "settled"), event(7, "reversed")])
    assert outcome(made) == [("late", "older_version"), ("advanced", "already_credited"), ("advanced", None)]
    assert made.entries == [Entry("deposit:dep:debit", "usr", -440, "evt_7")]
    assert keys(made) == ["deposit:dep:debit", "deposit:dep:hold_goods"]


def test_after_pruning_the_first_event_that_advanced_ends_the_doubt() -> None:
    """A kept event that is noted as late may be late to a pruned one; from the first `advanced` on it is certain."""
    made = Deposit("dep", "ord", "usr", earlier_pruned=True, credit=Entry("deposit:dep:credit", "usr", 450, "evt_gone"))
    made.apply_all(
        [
            event(4, "open", verdict="late"),
            event(7, "settled"),
            event(6, "open", verdict="advanced"),
            event(8, "reversed"),
        ]
    )
    assert outcome(made) == [
        *(("late", "older_version"), ("advanced", "already_credited"), ("late", "older_version"), ("advanced", None))
    ]
    assert [entry.amount_minor for entry in made.entries] == [-450]
    without = life(event(4, "open", verdict="late"))
    assert outcome(without) == [("advanced", None)]
