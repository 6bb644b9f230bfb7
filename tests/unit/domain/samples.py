"""Deposit events for tests: bytes as the gateway sends them, and states to apply them to."""

import json

from schemas.events import DepositEvent
from sinks.domain import deposits
from sinks.domain.decision import Correlation, Credit, DepositDecision, DepositState, Refusal

DEPOSIT_ID = "dep_7"
ORDER_ID = "ord_7"
USER_ID = "usr_7"

Json = dict[str, object]

AMOUNTS: Json = {
    "ordered_amount_minor": 500_000,
    "transferred_amount_minor": 500_000,
    "amount_received_minor": 500_000,
    "fee_total_minor": 7_500,
    "credited_amount_minor": 492_500,
}

FLAG: Json = {
    "claim_id": "clm_7",
    "cause": "same_transfer_excess",
    "amount_minor": 25_000,
    "slip_received_at": "2026-07-01T10:31:00Z",
    "status": "open",
    "action_required": "contact_support",
    "expected_response_at": "2026-07-02T10:31:00Z",
}


def body(version: object, status: str, /, **fields: object) -> bytes:
    """A deposit event as bytes; `fields` go into `data.object`. Amounts are there for settled and reversed."""
    amounts = AMOUNTS if status in ("settled", "reversed") else {}
    event = {
        "id": f"evt_{version}",
        "object": "event",
        "type": f"deposit.{status}",
        "api_version": "2026-01-01",
        "livemode": True,
        "created_at": "2026-07-01T10:33:15Z",
        "sequence": 41,
        "account": {"merchant_id": "mer_1", "white_label_id": None},
        "data": {
            "object": {
                "id": DEPOSIT_ID,
                "object": "deposit_order",
                "version": version,
                "status": status,
                **amounts,
                **fields,
            },
        },
    }
    return json.dumps(event, ensure_ascii=False).encode()


def event(version: int, status: str, /, **fields: object) -> DepositEvent:
    """The same, typed."""
    parsed = deposits.parse(body(version, status, **fields))
    assert isinstance(parsed, DepositEvent), parsed
    return parsed


def fresh() -> DepositState:
    """A deposit of which only the correlation is known."""
    return DepositState(DEPOSIT_ID, Correlation(ORDER_ID, USER_ID))


def credited(version: int = 9, amount_minor: int = 500_000, user_id: str = USER_ID) -> DepositState:
    """A deposit that was credited at `version`."""
    return DepositState(DEPOSIT_ID, Correlation(ORDER_ID, USER_ID), version, None, Credit(user_id, amount_minor))


def decided(state: DepositState, given: DepositEvent) -> DepositDecision:
    """The decision; fails where the event is refused."""
    decision = deposits.decide(state, given)
    assert isinstance(decision, DepositDecision), decision
    return decision


def refusal(given: object) -> Refusal:
    """The refusal; fails where there is none."""
    assert isinstance(given, Refusal), given
    return given
