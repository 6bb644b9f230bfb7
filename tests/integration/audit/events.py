"""Events by hand: those that a random life of a deposit does not have."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.running import MERCHANT


@dataclass(frozen=True)
class Posted:
    """An event as it is posted; one of the other mode never reaches this installation's sink."""

    id: str
    body: bytes
    reaches_the_sink: bool = True


@dataclass(frozen=True)
class OddEvents:
    """Events, and correlations that are to be written after they have arrived."""

    events: list[Posted]
    correlations: dict[str, tuple[str, str, str]]


def deposit(
    event_id: str, deposit_id: str, version: int, status: str, *, livemode: object = True, **members: object
) -> Posted:
    """One event of a deposit, with further members of the object."""
    o = {"id": deposit_id, "object": "deposit_order", "version": version, "status": status} | members
    return _posted(event_id, f"deposit.{status}", o, livemode=livemode)


def withdrawal(
    event_id: str,
    withdrawal_id: str,
    version: int,
    status: str,
    *,
    beside: Mapping[str, Mapping[str, object]] | None = None,
    **members: object,
) -> Posted:
    """One event of a withdrawal, sparse unless the members say more; beside it what `paid` or `back` gives."""
    o = {"id": withdrawal_id, "object": "withdrawal_order", "version": version, "status": status} | members
    kind = status if beside is None else "fill_reversed" if "reversal" in beside else "filled"
    return _posted(event_id, f"withdrawal.{kind}", o, beside)


def movement(event_id: str, transaction_id: str, amount_minor: int) -> Posted:
    """One event of a balance transaction; it has neither version nor status."""
    o = {"id": transaction_id, "object": "balance_transaction", "type": "fee", "direction": "debit"}
    moved = {"bucket_from": "available", "source": {"id": "wdr_odd"}, "balance_after": {"available_minor": 1.50}}
    created = {"amount_minor": amount_minor, "created_at": "2026-03-02T17:04:41.1234567+07:00"}
    return _posted(event_id, "balance.debited", o | moved | created)


def _posted(
    event_id: str,
    event_type: str,
    o: Mapping[str, object],
    beside: Mapping[str, object] | None = None,
    *,
    livemode: object = True,
) -> Posted:
    body = {
        "id": event_id,
        "object": "event",
        "type": event_type,
        "livemode": livemode,
        "created_at": "2026-03-02T10:04:41Z",
        "sequence": o.get("version", 1),
        "account": {"merchant_id": MERCHANT},
        "data": {"object": o} | dict(beside or {}),
    }
    return Posted(event_id, json.dumps(body, ensure_ascii=False).encode(), reaches_the_sink=livemode is not False)


def money(ordered: int, transferred: int, fee: int) -> dict[str, object]:
    """The five amounts of a deposit that hold the money rule (satang)."""
    received = min(ordered, transferred)
    return {
        "ordered_amount_minor": ordered,
        "transferred_amount_minor": transferred,
        "amount_received_minor": received,
        "fee_total_minor": fee,
        "credited_amount_minor": received - fee,
    }


def claim(claim_id: str, amount_minor: int) -> dict[str, object]:
    """An overpayment flag."""
    return {
        "claim_id": claim_id,
        "cause": "same_transfer_excess",
        "amount_minor": amount_minor,
        "slip_received_at": "2026-03-02T17:04:41.1234567+07:00",
        "status": "open",
        "action_required": "contact_support",
        "expected_response_at": None,
    }


def paid(leg_ref: str, amount_minor: int = 30_000) -> dict[str, dict[str, object]]:
    """`data.fill`: a chunk that was paid out by the transaction `btx_<leg>`."""
    chunk: dict[str, object] = {"leg_ref": leg_ref, "sequence": 1, "amount_minor": amount_minor}
    chunk |= {"fee_recognized_minor": 802, "settled_at": "2026-03-02T17:04:41.5+07:00"}
    return {"fill": chunk | {"balance_transaction_id": f"btx_{leg_ref}"}}


def back(leg_ref: str, amount_minor: int = 30_000) -> dict[str, dict[str, object]]:
    """`data.fill` and `data.reversal`: it was taken back by `btx_<leg>_back`."""
    reversal: dict[str, object] = {"reason_code": "BANK_RECALL", "reverses_balance_transaction_id": f"btx_{leg_ref}"}
    return paid(leg_ref, amount_minor) | {"reversal": reversal | {"balance_transaction_id": f"btx_{leg_ref}_back"}}


def withdrawal_events() -> list[Posted]:
    """Every effect of a withdrawal, what waits for a row, what is late, and what is refused.

    `wdr_odd` waits for the event that builds it, is closed, and a reversal that came before its chunk opens it again.
    `wdr_half` ends half paid and is taken back from; `wdr_no` is not approved; `wdr_wait` waits for ever.
    """
    whole: dict[str, Any] = {
        "amount_total_minor": 100_000,
        "fee_total_minor": 2_675,
        "total_locked_minor": 102_675,
        "max_splits": 3,
    }
    begun = whole | {"filled_minor": 0, "remaining_minor": 100_000, "merchant_reference": "ticket-1"}
    half: dict[str, Any] = {
        "filled_minor": 70_000,
        "remaining_minor": 0,
        "refunded_minor": 30_000,
        "fee_recognized_minor": 1_872,
    }
    full: dict[str, Any] = {"filled_minor": 100_000, "remaining_minor": 0, "settled_splits": 2}
    return [
        withdrawal("evt_w2", "wdr_odd", 2, "partially_filled", beside=paid("leg_1"), filled_minor=30_000),
        withdrawal("evt_w3", "wdr_odd", 3, "partially_filled", remaining_minor=70_000),
        withdrawal("evt_w1", "wdr_odd", 1, "open", **begun),
        withdrawal("evt_w5", "wdr_odd", 5, "settled", **full),
        withdrawal("evt_w7", "wdr_odd", 7, "in_dispute", beside=back("leg_2", 70_000)),
        withdrawal("evt_w4", "wdr_odd", 4, "partially_filled", beside=paid("leg_2", 70_000)),
        withdrawal("evt_w8", "wdr_odd", 8, "settled", beside=back("leg_2", 70_000), **full),
        withdrawal("evt_w9", "wdr_odd", 9, "settled", **full),
        withdrawal("evt_half_1", "wdr_half", 1, "open", **begun, metadata={"ticket": "ticket-2"}),
        withdrawal("evt_half_2", "wdr_half", 2, "expired", beside=back("leg_3"), **half),
        withdrawal("evt_half_3", "wdr_half", 3, "canceled"),
        withdrawal("evt_no", "wdr_no", 1, "rejected", **begun),
        withdrawal("evt_w_wait", "wdr_wait", 2, "partially_filled", beside=paid("leg_4")),
        withdrawal("evt_w_other", "wdr_no", 2, "rejected", beside=paid("leg_1", 7)),
        movement("evt_move_1", "btx_move", 803),
        movement("evt_move_2", "btx_move", 803),
        movement("evt_move_3", "btx_move", 804),
        movement("evt_move_4", "btx_other", 5),
    ]


def odd_events() -> OddEvents:
    """Every column of a row, every effect, flags, and each way to be set aside.

    `dep_odd` waits for its correlation; one of its events contradicts a claim and is set aside when it is decided.
    `dep_wait` comes first and waits for ever.
    """
    amounts = money(10_000, 12_500, 150)
    return OddEvents(
        [
            deposit("evt_wait", "dep_wait", 1, "open"),
            deposit("evt_odd_1", "dep_odd", 1, "settled", **amounts, overpayment=claim("clm_odd", 2_500), partial=True),
            deposit("evt_odd_2", "dep_odd", 2, "open", overpayment=claim("clm_odd", 9)),
            deposit(
                "evt_odd_5",
                "dep_odd",
                5,
                "reversed",
                **amounts,
                fee_breakdown={"percent": 1.50, "parts": [1e2, True, None]},
                overpayment=claim("clm_late", 2_500),
                balance_transaction_id="btx_odd",
                clearing_available_at="2026-03-04T00:00:60+07:00",
                is_terminal=True,
            ),
            deposit("evt_odd_3", "dep_odd", 3, "under_review", review={"reasons": [{"display_th": "รอตรวจสอบ"}]}),
            deposit("evt_review", "dep_review", 1, "under_review", review={"reasons": [{"display_th": "รอตรวจสอบ"}]}),
            deposit("evt_rejected", "dep_review", 2, "rejected", rejection={"display_th": "สลิปไม่ถูกต้อง"}),
            deposit("evt_canceled", "dep_review", 3, "canceled", cancel_reason_code="by_user", is_terminal=True),
            deposit("evt_money", "dep_money", 1, "settled", **(amounts | {"fee_total_minor": 9})),
            deposit("evt_no_mode", "dep_no_mode", 1, "open", livemode="yes"),
            deposit("evt_test_mode", "dep_test", 1, "open", livemode=False),
            Posted("evt_batch", deposit("evt_batch", "pb_1", 1, "x").body.replace(b"deposit_order", b"payout_batch")),
            *withdrawal_events(),
        ],
        {
            "dep_odd": ("ref_odd", "ord_odd", "user_odd"),
            "dep_review": ("ref_review", "ord_review", "user_review"),
            "dep_money": ("ref_money", "ord_money", "user_money"),
        },
    )
