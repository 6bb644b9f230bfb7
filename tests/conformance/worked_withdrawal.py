"""The gateway's worked order: 1,000 baht in three chunks, its eight deliveries, and what must be kept of them.

Source: the gateway's page on partial fills.
"""

import json
from datetime import UTC, datetime

from schemas.effects import CloseWithdrawal, ShowProgress, UpdateLocalStatus
from sinks.domain.body import read_text
from sinks.domain.decision import EffectDraft
from sinks.domain.withdrawal_state import Fill, Withdrawal, WithdrawalDecision, WithdrawalState
from tests.unit.domain.withdrawal_samples import Json, Ledger, reading

ORDER_ID, TICKET = "wdr_P", "WD-20260821-0007"
WHOLE: Json = {
    "merchant_reference": TICKET,
    "end_user_ref": "u_88213",
    "beneficiary_id": "ben_1",
    "currency": "THB",
    "amount_total_minor": 100_000,
    "fee_total_minor": 2_675,
    "total_locked_minor": 102_675,
    "max_splits": 4,
    "expires_at": "2026-08-21T09:02:11.402Z",
    "metadata": {"user_id": "u_88213", "ticket": TICKET},
}


def totals(filled: int, remaining: int, fee: int, splits: int) -> Json:
    """A whole snapshot (satang)."""
    paid: Json = {
        "filled_minor": filled,
        "remaining_minor": remaining,
        "fee_recognized_minor": fee,
        "settled_splits": splits,
    }
    return {**WHOLE, **paid}


def delivery(type_: str, version: int, status: str, created_at: str, order: Json, **siblings: object) -> bytes:
    """The body of one delivery."""
    snapshot = {"id": ORDER_ID, "object": "withdrawal_order", "version": version, "status": status, **order}
    envelope = {"id": f"evt_{version}", "object": "event", "type": f"withdrawal.{type_}", "created_at": created_at}
    body = {**envelope, "livemode": True, "sequence": 91_000 + version, "data": {"object": snapshot, **siblings}}
    return json.dumps(body).encode()


def reserved(version: int, status: str, created_at: str, filled: int, remaining: int, legs: int) -> bytes:
    """A sparse `withdrawal.matched`: a payer was reserved, no money moved."""
    order: Json = {
        "filled_minor": filled,
        "remaining_minor": remaining,
        "reserved_minor": 30_000,
        "matched_legs": legs,
    }
    return delivery("matched", version, status, created_at, order)


def fill(leg_ref: str, sequence: int, amount: int, fee: int, at: str, btxn: str) -> Json:
    """`data.fill` of a chunk, settled on 2026-08-21."""
    return {
        "leg_ref": leg_ref,
        "sequence": sequence,
        "amount_minor": amount,
        "fee_recognized_minor": fee,
        "settled_at": f"2026-08-21T{at}Z",
        "balance_transaction_id": btxn,
        "auto_confirm_at": f"2026-08-21T{int(at[:2]) + 3:02}{at[2:]}Z",
    }


FILLS = (
    fill("leg_1", 1, 30_000, 802, "03:19:47.903", "btxn_1"),
    fill("leg_2", 2, 40_000, 1_070, "03:33:12.664", "btxn_2"),
    fill("leg_3", 3, 30_000, 803, "03:52:40.019", "btxn_3"),
)
PARTLY = "partially_filled"
EIGHT = (
    delivery("created", 1, "open", "2026-08-21T03:02:11.508Z", totals(0, 100_000, 0, 0)),
    reserved(2, "open", "2026-08-21T03:14:26.118Z", 0, 70_000, 1),
    delivery("filled", 3, PARTLY, "2026-08-21T03:19:47.985Z", totals(30_000, 70_000, 802, 1), fill=FILLS[0]),
    reserved(4, PARTLY, "2026-08-21T03:21:05.220Z", 30_000, 30_000, 1),
    delivery("filled", 5, PARTLY, "2026-08-21T03:33:12.741Z", totals(70_000, 30_000, 1_872, 2), fill=FILLS[1]),
    reserved(6, PARTLY, "2026-08-21T03:40:58.771Z", 70_000, 0, 1),
    delivery("filled", 7, "settled", "2026-08-21T03:52:40.096Z", totals(100_000, 0, 2_675, 3), fill=FILLS[2]),
    delivery(
        "settled",
        8,
        "settled",
        "2026-08-21T03:52:40.102Z",
        {**totals(100_000, 0, 2_675, 3), "refunded_minor": 0, "dust_absorbed": False, "fills": [*FILLS]},
    ),
)
KEPT = [
    Fill(
        leg,
        ORDER_ID,
        amount,
        number,
        fee,
        datetime(2026, 8, 21, 3, *settled, tzinfo=UTC),
        datetime(2026, 8, 21, 6, *settled, tzinfo=UTC),
        f"btxn_{number}",
    )
    for leg, number, amount, fee, settled in (
        ("leg_1", 1, 30_000, 802, (19, 47, 903_000)),
        ("leg_2", 2, 40_000, 1_070, (33, 12, 664_000)),
        ("leg_3", 3, 30_000, 803, (52, 40, 19_000)),
    )
]
CLOSE = EffectDraft("close_withdrawal", f"withdrawal:{ORDER_ID}:close_withdrawal", CloseWithdrawal(ORDER_ID, TICKET), 7)
SETTLED = Withdrawal(
    pg_withdrawal_id=ORDER_ID,
    pg_version=8,
    status="settled",
    amount_total_minor=100_000,
    remaining_minor=0,
    filled_minor=100_000,
    fee_total_minor=2_675,
    total_locked_minor=102_675,
    refunded_minor=0,
    fee_recognized_minor=2_675,
    settled_splits=3,
    max_splits=4,
    our_ref=TICKET,
    closed=True,
    close_enqueued=True,
)


def progress(version: int, filled: int) -> EffectDraft:
    """So much of 1,000 baht was paid out."""
    return EffectDraft("show_progress", f"evt_{version}:show_progress", ShowProgress(TICKET, filled, 100_000), version)


def opened(version: int) -> EffectDraft:
    """The order is open."""
    key = f"evt_{version}:update_local_status"
    return EffectDraft("update_local_status", key, UpdateLocalStatus(TICKET, "open"), version)


class Order(Ledger):
    """One withdrawal that takes deliveries as the sink does: text, type, rules, decision."""

    def __init__(self) -> None:
        super().__init__(WithdrawalState(ORDER_ID))

    def deliver(self, raw: bytes) -> WithdrawalDecision:
        """Applies a delivery that must be fit and need not wait."""
        assert read_text(raw) == raw.decode()
        return self.take(reading(raw))

    @property
    def fills(self) -> list[Fill]:
        """The chunks by their numbers."""
        return sorted(self.facts.fills.values(), key=lambda kept: kept.sequence or 0)
