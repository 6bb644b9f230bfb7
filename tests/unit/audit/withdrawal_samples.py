"""Events of withdrawals as the inbox keeps them."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from tallyhook.operations.audit.stored_event import InboxEvent

NOW = datetime(2026, 3, 2, tzinfo=UTC)
REVERSED_AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
WHOLE: Mapping[str, object] = {
    "amount_total_minor": 100_000,
    "fee_total_minor": 2_675,
    "total_locked_minor": 102_675,
    "filled_minor": 0,
    "remaining_minor": 100_000,
    "max_splits": 4,
    "merchant_reference": "ref",
}


def event(
    version: int,
    status: str,
    members: Mapping[str, object] | None = None,
    *,
    kind: str = "attributes_changed",
    beside: Mapping[str, object] | None = None,
    noted: tuple[str, str | None] = ("advanced", None),
    parked: bool = False,
    **envelope: object,
) -> InboxEvent:
    """The event `evt_{version}` of `wdr`; sparse unless the members say more."""
    o = {"id": "wdr", "object": "withdrawal_order", "version": version, "status": status} | dict(members or {})
    body = {"id": f"evt_{version}", "type": f"withdrawal.{kind}", "created_at": REVERSED_AT.isoformat()} | envelope
    raw = json.dumps(body | {"data": {"object": o} | dict(beside or {})})
    at = None if parked else NOW
    return InboxEvent(f"evt_{version}", raw, 0, version, *noted, at, "withdrawal_order", version)


def fill(leg_ref: str, amount_minor: int = 30_000, **members: object) -> dict[str, object]:
    """`data.fill`, whose transaction is `btxn_<leg>`."""
    return {"leg_ref": leg_ref, "amount_minor": amount_minor, "balance_transaction_id": f"btxn_{leg_ref}"} | members


def reversal(leg_ref: str, **members: object) -> dict[str, object]:
    """`data.fill` and `data.reversal`."""
    told = {"reason_code": "BANK_RECALL", "reverses_balance_transaction_id": f"btxn_{leg_ref}"}
    return {"fill": fill(leg_ref), "reversal": told | {"balance_transaction_id": f"btxn_{leg_ref}_back"} | members}


def filled(version: int, leg_ref: str, status: str = "partially_filled", **members: object) -> InboxEvent:
    """A `withdrawal.filled`."""
    return event(version, status, members, kind="filled", beside={"fill": fill(leg_ref)})


def taken_back(version: int, leg_ref: str, status: str = "settled", **members: object) -> InboxEvent:
    """A `withdrawal.fill_reversed`."""
    return event(version, status, members, kind="fill_reversed", beside=reversal(leg_ref))
