"""Deposit events by hand: those that a random life does not have."""

import json
from dataclasses import dataclass

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
    body = {
        "id": event_id,
        "object": "event",
        "type": f"deposit.{status}",
        "livemode": livemode,
        "created_at": "2026-03-02T10:04:41Z",
        "sequence": version,
        "account": {"merchant_id": MERCHANT},
        "data": {
            "object": {"id": deposit_id, "object": "deposit_order", "version": version, "status": status} | members
        },
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
            Posted(
                "evt_btx", deposit("evt_btx", "btx_1", 1, "x").body.replace(b"deposit_order", b"balance_transaction")
            ),
        ],
        {
            "dep_odd": ("ref_odd", "ord_odd", "user_odd"),
            "dep_review": ("ref_review", "ord_review", "user_review"),
            "dep_money": ("ref_money", "ord_money", "user_money"),
        },
    )
