"""The oracle itself, held to the gateway contract's worked examples with exact numbers."""

import itertools
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sinks.migrations import upgrade
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation
from tests.reference.handler import Delivery, Handler

MONEY: dict[str, Any] = {
    "ordered_amount_minor": 500_000,
    "transferred_amount_minor": 500_000,
    "amount_received_minor": 500_000,
    "fee_total_minor": 7_500,
    "credited_amount_minor": 492_500,
}
FLAG: dict[str, Any] = {
    "claim_id": "clm_1",
    "cause": "additional_transfer",
    "amount_minor": 10_000,
    "slip_received_at": "2026-03-01T03:33:10Z",
    "status": "open",
    "action_required": "contact_support",
}


class Shop:
    """A merchant with one handler; `send` gives the verdict."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.handler = Handler(connection, schema)
        self.connection = connection
        self._offsets = itertools.count()

    def send(self, event_id: str, version: int | None, status: str, *, deposit: str = "dep_1", **members: Any) -> str:
        """Delivers an event; the same id again is the same event again."""
        offset = next(self._offsets)
        snapshot = {"id": deposit, "object": "deposit_order", "version": version, "status": status, **members}
        body = {
            "id": event_id,
            "object": "event",
            "type": f"deposit.{status}",
            "livemode": True,
            "created_at": "2026-03-01T03:33:15Z",
            "sequence": offset,
            "account": {"merchant_id": "mer_1"},
            "data": {"object": snapshot},
        }
        received_at = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=offset)
        return self.handler.deliver(json.dumps(body).encode(), Delivery(event_id, deposit, 0, 0, offset, received_at))

    def column(self, statement: Any) -> list[Any]:
        """The first column of a query."""
        return [row[0] for row in self.connection.execute(statement).fetchall()]

    @property
    def effects(self) -> list[Any]:
        """The topics of the outbox in order, balance entries left out."""
        return self.column("SELECT topic FROM pg_outbox WHERE topic <> 'balance_entry' ORDER BY seq")


@pytest.fixture
def shop(database_settings: DatabaseSettings, installation: Installation) -> Iterator[Shop]:
    """A correlated shop on a schema of its own."""
    upgrade(database_settings, installation)
    with connect(database_settings, "reference") as connection:
        opened = Shop(connection, installation.schema_name)
        opened.handler.correlate("dep_1", "ref_1", "ord_1", "usr_1")
        yield opened


def test_expired_after_settled_changes_nothing(shop: Shop) -> None:
    """Example A: expired v6 lands after settled v9."""
    shop.send("evt_7", 7, "slip_received")
    shop.send("evt_9", 9, "settled", **MONEY)

    assert shop.send("evt_6", 6, "expired", is_terminal=True) == "late"
    assert shop.effects == ["update_order_status", "release_goods"]
    assert shop.column("SELECT balance_minor FROM pg_user_balances") == [500_000]


def test_settled_after_reversed_credits_nothing(shop: Shop) -> None:
    """Example B: settled v9 lands after reversed v12."""
    shop.send("evt_12", 12, "reversed", **MONEY)

    assert shop.send("evt_9", 9, "settled", **MONEY) == "late"
    assert shop.effects == []
    assert shop.column("SELECT reason FROM pg_webhook_inbox ORDER BY arrival_seq") == [
        "never_credited",
        "older_version",
    ]


def test_the_debit_repeats_the_credit(shop: Shop) -> None:
    """A reversal whose snapshot names another amount takes back exactly what was given."""
    smaller = {**MONEY, "transferred_amount_minor": 300_000, "amount_received_minor": 300_000}
    shop.send("evt_1", 1, "settled", **MONEY)
    shop.send("evt_2", 2, "reversed", **{**smaller, "credited_amount_minor": 292_500})

    assert shop.column("SELECT amount_minor FROM pg_user_balance_entries ORDER BY entry_key") == [500_000, -500_000]
    assert shop.column("SELECT balance_minor FROM pg_user_balances") == [0]
    assert shop.effects == ["release_goods", "hold_goods"]


def test_a_deposit_is_credited_once(shop: Shop) -> None:
    """A second settled of a higher version, also after the reversal, credits nothing."""
    shop.send("evt_1", 1, "settled", **MONEY)
    shop.send("evt_2", 2, "settled", **MONEY)
    shop.send("evt_3", 3, "reversed", **MONEY)
    shop.send("evt_4", 4, "settled", **MONEY)
    shop.send("evt_5", 5, "reversed", **MONEY)

    assert shop.effects == ["release_goods", "hold_goods"]
    assert shop.column("SELECT reason FROM pg_webhook_inbox ORDER BY arrival_seq") == [
        None,
        "already_credited",
        None,
        "already_credited",
        "already_reversed",
    ]


def test_parked_events_are_applied_in_first_arrival_order(shop: Shop) -> None:
    """Without a correlation nothing is lost; with it the first to arrive is the first to act, copies aside."""
    for event_id, version, status in (("evt_1", 1, "slip_received"), ("evt_3", 3, "settled"), ("evt_2", 2, "open")):
        assert shop.send(event_id, version, status, deposit="dep_2", **MONEY) == "parked"
        assert shop.send(event_id, version, status, deposit="dep_2", **MONEY) == "redelivered"
    assert shop.handler.look_for_parked() == 0

    shop.handler.correlate("dep_2", "ref_2", "ord_2", "usr_2")

    assert shop.send("evt_4", 4, "under_review", deposit="dep_2") == "advanced"
    assert shop.effects == ["update_order_status", "release_goods", "show_pending_review"]
    assert shop.column("SELECT verdict FROM pg_webhook_inbox ORDER BY arrival_seq") == [
        "advanced",
        "advanced",
        "late",
        "advanced",
    ]
    assert shop.column("SELECT count(*) FROM redeliveries") == [3]


def test_the_money_rule_quarantines_before_parking(shop: Shop) -> None:
    """A wrong amount sets the whole event aside, flag included, though its deposit is not known yet."""
    wrong = {**MONEY, "fee_total_minor": 500_001, "credited_amount_minor": -1, "overpayment": FLAG}

    assert shop.send("evt_1", 1, "settled", deposit="dep_2", **wrong) == "quarantined"
    assert shop.column("SELECT count(*) FROM pg_webhook_inbox") == [0]
    assert shop.column("SELECT reason FROM quarantined_events") == ["money_rule"]


def test_a_late_event_keeps_its_flag(shop: Shop) -> None:
    """The flag of v11 is kept when it lands after v12; the first-seen version stays."""
    shop.send("evt_12", 12, "slip_received")
    assert shop.send("evt_11", 11, "open", overpayment=FLAG) == "late"
    shop.send("evt_13", 13, "slip_received", overpayment=FLAG)

    assert shop.column("SELECT observed_deposit_version FROM pg_deposit_overpayment_flags") == [11]
    assert shop.column("SELECT overpayment ->> 'claim_id' FROM pg_deposits") == ["clm_1"]


def test_a_claim_with_other_content_is_quarantined_whole(shop: Shop) -> None:
    """The colliding event neither advances its deposit nor enters the inbox, parked or not."""
    shop.send("evt_1", 1, "open", overpayment=FLAG)

    assert shop.send("evt_2", 2, "settled", overpayment={**FLAG, "amount_minor": 9_999}, **MONEY) == "quarantined"
    assert shop.send("evt_3", 3, "open", deposit="dep_2", overpayment=FLAG) == "parked"
    shop.handler.correlate("dep_2", "ref_2", "ord_2", "usr_2")
    assert shop.handler.look_for_parked() == 1

    assert shop.column("SELECT reason FROM quarantined_events") == ["overpayment_collision"] * 2
    assert shop.column("SELECT event_id FROM pg_webhook_inbox") == ["evt_1"]
    assert shop.column("SELECT pg_version FROM pg_deposits") == [1]
    assert shop.column("SELECT count(*) FROM pg_user_balances") == [0]


@pytest.mark.parametrize(
    ("members", "effect", "payload"),
    [
        (
            {"status": "expired", "is_terminal": False, "late_slip_accepted_until": "2026-03-02T10:04:41+07:00"},
            "show_late_slip",
            {"order_id": "ord_1", "until": "2026-03-02T10:04:41+07:00"},
        ),
        ({"status": "expired"}, "fail_order", {"order_id": "ord_1", "reason": "expired"}),
        (
            {"status": "canceled", "cancel_reason_code": "by_user"},
            "fail_order",
            {"order_id": "ord_1", "reason": "by_user"},
        ),
        ({"status": "under_review"}, "show_pending_review", {"order_id": "ord_1", "message": None}),
        (
            {"status": "rejected", "rejection": {"display_th": "สลิปไม่ชัด 😿 é"}},
            "fail_order",
            {"order_id": "ord_1", "reason": "สลิปไม่ชัด 😿 é"},
        ),
        ({"status": "frozen_by_bank"}, "update_order_status", {"order_id": "ord_1", "status": "frozen_by_bank"}),
        (
            {"status": "settled", "partial": "true", **MONEY},
            "release_goods",
            {"order_id": "ord_1", "partial": False, "received": 500_000, "ordered": 500_000},
        ),
    ],
)
def test_each_status_has_its_effect(shop: Shop, members: dict[str, Any], effect: str, payload: dict[str, Any]) -> None:
    """Name, payload and dedupe key of each effect are the contract's."""
    status = members.pop("status")
    shop.send("evt_1", 1, status, **members)

    scope = "deposit:dep_1" if effect == "release_goods" else "evt_1"
    rows = shop.connection.execute(
        "SELECT topic, payload, dedupe_key FROM pg_outbox WHERE topic <> 'balance_entry'"
    ).fetchall()
    assert rows == [(effect, payload, f"{scope}:{effect}")]
