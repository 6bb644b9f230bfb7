"""The gateway's worked examples for deposits, with their very numbers.

Source: the gateway's page on event order, cases A and B, and its rule on overpayment flags of late events.
"""

import json
from datetime import UTC, datetime

from schemas.effects import FailOrder, HoldGoods, ReleaseGoods, UpdateOrderStatus
from sinks.domain.body import read_text
from sinks.domain.decide import DEPOSITS
from sinks.domain.decision import (
    Correlation,
    Credit,
    DepositDecision,
    DepositState,
    EffectDraft,
    EntryDraft,
    Refusal,
)

FIVE_THOUSAND_BAHT_MINOR = 500_000
AMOUNTS = {
    "ordered_amount_minor": FIVE_THOUSAND_BAHT_MINOR,
    "transferred_amount_minor": FIVE_THOUSAND_BAHT_MINOR,
    "amount_received_minor": FIVE_THOUSAND_BAHT_MINOR,
    "fee_total_minor": 7_500,
    "credited_amount_minor": 492_500,
}


def delivery(status: str, version: int, created_at: str = "2026-07-01T10:33:15Z", /, **fields: object) -> bytes:
    """The body of one delivery."""
    deposit = {"id": "dep_A", "object": "deposit_order", "version": version, "status": status, **fields}
    envelope = {"id": f"evt_{version}", "object": "event", "type": f"deposit.{status}", "created_at": created_at}
    return json.dumps({**envelope, "livemode": True, "data": {"object": deposit}}, ensure_ascii=False).encode()


class Deposit:
    """One deposit that takes deliveries as the sink does: text, type, rules, decision."""

    def __init__(self) -> None:
        self.state = DepositState("dep_A", Correlation("ord_A", "usr_A"))
        self.effects: list[EffectDraft] = []
        self.entries: list[EntryDraft] = []

    def take(self, raw: bytes) -> DepositDecision:
        """Applies a delivery that must be fit."""
        decision = self.judge(raw)
        assert isinstance(decision, DepositDecision), decision
        self.state = decision.state
        self.effects += decision.effects
        self.entries += decision.entries
        return decision

    def judge(self, raw: bytes) -> DepositDecision | Refusal:
        """What is said of a delivery, which is not applied yet."""
        text = read_text(raw)
        if isinstance(text, Refusal):
            return text
        event = DEPOSITS.parse(raw)
        return event if isinstance(event, Refusal) else DEPOSITS.decide(self.state, event)

    @property
    def status(self) -> str | None:
        """The status that the row shows."""
        return None if self.state.snapshot is None else self.state.snapshot.data.object.status


def test_case_a_expired_after_settled() -> None:
    """The expiry of 10:04:41 lands at 10:35:10, after the settlement: nothing is canceled."""
    deposit = Deposit()
    deposit.take(delivery("slip_received", 7, "2026-07-01T10:31:02Z"))
    deposit.take(delivery("settled", 9, "2026-07-01T10:33:15Z", **AMOUNTS))
    late = deposit.take(delivery("expired", 6, "2026-07-01T10:04:41Z", is_terminal=True))
    assert (late.verdict, late.reason, late.effects, late.entries) == ("late", "older_version", (), ())
    assert (deposit.state.version, deposit.status) == (9, "settled")
    assert deposit.entries == [EntryDraft("deposit:dep_A:credit", "usr_A", 500_000)]
    assert deposit.effects == [
        EffectDraft("update_order_status", "evt_7:update_order_status", UpdateOrderStatus("ord_A", "slip_received"), 7),
        EffectDraft("release_goods", "deposit:dep_A:release_goods", ReleaseGoods("ord_A", False, 500_000, 500_000), 9),
    ]


def test_case_b_settled_after_reversed() -> None:
    """The third attempt of settled v9 lands at 09:44:12, after reversed v12: no credit and no release."""
    deposit = Deposit()
    first = deposit.take(delivery("reversed", 12, "2026-07-01T09:41:20Z", **AMOUNTS))
    late = deposit.take(delivery("settled", 9, "2026-07-01T09:38:02Z", **AMOUNTS))
    assert (first.verdict, first.reason) == ("advanced", "never_credited")
    assert (late.verdict, late.reason) == ("late", "older_version")
    assert (deposit.effects, deposit.entries) == ([], [])
    assert (deposit.state.version, deposit.status) == (12, "reversed")


def test_an_expired_deposit_can_still_settle() -> None:
    """The late slip of case A with nothing late: expired v6, slip v7, settled v9 in order."""
    deposit = Deposit()
    deposit.take(delivery("expired", 6, is_terminal=False, late_slip_accepted_until="2026-07-02T10:04:41Z"))
    deposit.take(delivery("slip_received", 7))
    deposit.take(delivery("settled", 9, **AMOUNTS))
    assert [effect.name for effect in deposit.effects] == ["show_late_slip", "update_order_status", "release_goods"]
    assert [entry.amount_minor for entry in deposit.entries] == [500_000]


def test_a_settlement_and_its_reversal_in_order() -> None:
    """5,000 baht go in and the same 5,000 come out."""
    deposit = Deposit()
    deposit.take(delivery("settled", 9, **AMOUNTS))
    deposit.take(delivery("reversed", 12, **AMOUNTS))
    assert [entry.amount_minor for entry in deposit.entries] == [500_000, -500_000]
    assert deposit.effects[1] == EffectDraft("hold_goods", "deposit:dep_A:hold_goods", HoldGoods("ord_A"), 12)


def test_a_late_event_keeps_its_overpayment_flag() -> None:
    """v11 is received after v12 and must still preserve its claim: 5,250 came for an order of 5,000."""
    deposit = Deposit()
    amounts = {**AMOUNTS, "transferred_amount_minor": 525_000}
    flag = {
        "claim_id": "clm_1",
        "cause": "same_transfer_excess",
        "amount_minor": 25_000,
        "slip_received_at": "2026-07-01T10:31:02Z",
        "status": "open",
        "action_required": "contact_support",
        "expected_response_at": None,
    }
    deposit.take(delivery("settled", 12, **amounts))
    late = deposit.take(delivery("settled", 11, overpayment=flag, **amounts))
    assert (late.verdict, late.effects, late.entries) == ("late", (), ())
    assert late.flag is not None
    assert (late.flag.pg_deposit_id, late.flag.observed_deposit_version) == ("dep_A", 11)
    assert (late.flag.flag.claim_id, late.flag.flag.amount_minor) == ("clm_1", 25_000)
    assert late.flag.slip_received_at == datetime(2026, 7, 1, 10, 31, 2, tzinfo=UTC)
    assert late.flag.expected_response_at is None
    assert json.loads(late.flag.raw) == flag
    assert deposit.state.version == 12
    assert deposit.state.credit == Credit("usr_A", 500_000)


def test_thai_text_with_an_emoji_is_the_same_text_in_both_spellings() -> None:
    """UTF-8 and JSON escapes with a surrogate pair give one reason, to the character."""
    note = "สลิปไม่ชัด 😿 é"
    utf8 = delivery("rejected", 3, rejection={"display_th": note})
    escaped = json.dumps(json.loads(utf8), ensure_ascii=True).encode()
    assert (rb"\ud83d\ude3f" in escaped, escaped.isascii()) == (True, True)
    for raw in (utf8, escaped):
        deposit = Deposit()
        deposit.take(raw)
        assert [effect.payload for effect in deposit.effects] == [FailOrder("ord_A", note)]
        assert read_text(raw) == raw.decode()


def test_settled_before_created_of_the_same_second() -> None:
    """Settled v2 arrives before open v1, both created in the same second: the version decides, not the clock."""
    deposit = Deposit()
    deposit.take(delivery("settled", 2, **AMOUNTS))
    late = deposit.take(delivery("open", 1))
    assert (late.verdict, deposit.status, deposit.state.version) == ("late", "settled", 2)
    assert [effect.name for effect in deposit.effects] == ["release_goods"]


def test_versions_from_zero_with_gaps_and_one_that_is_text() -> None:
    """0 creates the row, 90 jumps ahead, 45 is late, "91" is set aside and the row stays at 90."""
    deposit = Deposit()
    assert deposit.take(delivery("open", 0)).verdict == "advanced"
    assert deposit.take(delivery("slip_received", 90)).verdict == "advanced"
    assert deposit.take(delivery("under_review", 45)).verdict == "late"
    refused = deposit.judge(delivery("slip_received", 91).replace(b'"version": 91', b'"version": "91"'))
    assert isinstance(refused, Refusal)
    assert (refused.reason, "data.object.version" in refused.detail) == ("body_shape", True)
    assert (deposit.state.version, len(deposit.effects)) == (90, 2)


def test_amounts_that_cannot_be_credited() -> None:
    """Received 0, ordered -100, fee above received: set aside; a fee that equals what was received is a credit."""
    for broken in ({"amount_received_minor": 0}, {"ordered_amount_minor": -100}, {"fee_total_minor": 500_001}):
        refused = Deposit().judge(delivery("settled", 9, **{**AMOUNTS, **broken}))
        assert isinstance(refused, Refusal)
        assert refused.reason == "money_rule"
    deposit = Deposit()
    deposit.take(delivery("settled", 9, **{**AMOUNTS, "fee_total_minor": 500_000, "credited_amount_minor": 0}))
    assert [entry.amount_minor for entry in deposit.entries] == [500_000]
    assert [effect.name for effect in deposit.effects] == ["release_goods"]


def test_metadata_and_fee_breakdown_of_any_shape() -> None:
    """Lists, objects and nulls where others might expect something else are not the event's fault."""
    deposit = Deposit()
    shapes: list[object] = [[], {}, None]
    for version, shape in enumerate(shapes):
        assert deposit.take(delivery("open", version, fee_breakdown=shape, metadata=shape)).verdict == "advanced"


def test_a_nul_in_metadata_is_named() -> None:
    """The reason leads to the field, though no rule ever reads it."""
    raw = delivery("settled", 9, metadata={"note": "a\0b"}, **AMOUNTS)
    assert Deposit().judge(raw) == Refusal("body_text", "data.object.metadata.note has a NUL")
