"""A merchant who pays out by the reference handler, and the order of the gateway's page on partial fills."""

import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tallyhook.postgres import Connection
from tests.reference.handler import Delivery, Handler

Sent = tuple[int, str, str, dict[str, Any], dict[str, Any]]
"""Version, type, status, data.object and what stands beside it."""
ORDER: dict[str, Any] = {
    "merchant_reference": "WD-7",
    "amount_total_minor": 100_000,
    "fee_total_minor": 2_675,
    "total_locked_minor": 102_675,
    "max_splits": 4,
    "metadata": {"ticket": "another", "payout_id": "a third"},
}


def totals(filled: int, remaining: int, recognized: int, splits: int) -> dict[str, Any]:
    """A whole snapshot of the order (satang)."""
    told = {"filled_minor": filled, "remaining_minor": remaining, "fee_recognized_minor": recognized}
    return {**ORDER, **told, "settled_splits": splits}


def fill_of(number: int, amount: int, fee: int) -> dict[str, Any]:
    """The chunk of that number (satang)."""
    return {
        "leg_ref": f"leg_{number}",
        "sequence": number,
        "amount_minor": amount,
        "fee_recognized_minor": fee,
        "settled_at": f"2026-08-21T03:{number}9:47.903Z",
        "balance_transaction_id": f"btxn_{number}",
    }


FILL_1, FILL_2, FILL_3 = fill_of(1, 30_000, 802), fill_of(2, 40_000, 1_070), fill_of(3, 30_000, 803)
EIGHT: list[Sent] = [
    (1, "created", "open", totals(0, 100_000, 0, 0), {}),
    (2, "matched", "open", {"filled_minor": 0, "remaining_minor": 70_000, "reserved_minor": 30_000}, {}),
    (3, "filled", "partially_filled", totals(30_000, 70_000, 802, 1), {"fill": FILL_1}),
    (4, "matched", "partially_filled", {"filled_minor": 30_000, "remaining_minor": 30_000}, {}),
    (5, "filled", "partially_filled", totals(70_000, 30_000, 1_872, 2), {"fill": FILL_2}),
    (6, "matched", "partially_filled", {"filled_minor": 70_000, "remaining_minor": 0, "matched_legs": 1}, {}),
    (7, "filled", "settled", totals(100_000, 0, 2_675, 3), {"fill": FILL_3}),
    (8, "settled", "settled", {**totals(100_000, 0, 2_675, 3), "refunded_minor": 0}, {}),
]
"""The order of 1,000 THB in three chunks."""


def reversal_of(fill: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """What stands beside data.object where the chunk is taken back."""
    transaction = fill["balance_transaction_id"]
    reversal = {"reason_code": "BANK_RECALL", "reverses_balance_transaction_id": transaction}
    return {"fill": fill, "reversal": {**reversal, "balance_transaction_id": f"{transaction}_back", **changed}}


class Payouts:
    """A merchant with one handler; `send` and `post` give the verdict."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.handler = Handler(connection, schema)
        self.connection = connection
        self._offsets = itertools.count()

    def send(
        self,
        version: int,
        kind: str,
        status: str,
        members: dict[str, Any],
        beside: dict[str, Any],
        order: str = "wdr_1",
    ) -> str:
        """Delivers `withdrawal.<kind>`; its id follows from order, version and kind."""
        snapshot = {"id": order, "object": "withdrawal_order", "version": version, "status": status, **members}
        return self._deliver(f"{order}_{version}_{kind}", f"withdrawal.{kind}", {"object": snapshot, **beside})

    def post(self, event_id: str, **members: Any) -> str:
        """Delivers a balance transaction."""
        o = {"id": "btxn_1", "object": "balance_transaction", "type": "fill", "direction": "debit", **members}
        return self._deliver(event_id, "balance.debited", {"object": o})

    def _deliver(self, event_id: str, event_type: str, data: dict[str, Any]) -> str:
        offset = next(self._offsets)
        body = {
            "id": event_id,
            "object": "event",
            "type": event_type,
            "livemode": True,
            "created_at": "2026-08-21T05:00:00Z",
            "sequence": offset,
            "account": {"merchant_id": "mer_1"},
            "data": data,
        }
        received_at = datetime(2026, 8, 21, tzinfo=UTC) + timedelta(seconds=offset)
        delivery = Delivery(event_id, data["object"]["id"], 0, 0, offset, received_at)
        return self.handler.deliver(json.dumps(body).encode(), delivery)

    def rows(self, statement: Any) -> list[Any]:
        """The rows of a query; the values alone where it has one column."""
        found = self.connection.execute(statement).fetchall()
        return [row[0] if len(row) == 1 else row for row in found]

    @property
    def effects(self) -> list[Any]:
        """The topics of the outbox in order."""
        return self.rows("SELECT topic FROM pg_outbox ORDER BY seq")

    @property
    def reasons(self) -> list[Any]:
        """The inbox's reasons in order of arrival."""
        return self.rows("SELECT reason FROM pg_webhook_inbox ORDER BY arrival_seq")
