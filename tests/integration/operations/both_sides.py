"""Orders and movements as the gateway tells them, and their rows here, with other values where a test wants it."""

import json
from typing import Any

from psycopg.types.json import Jsonb

from tests.integration.operations.operated import MERCHANT, Operated
from tests.integration.operations.tiny_gateway import TinyGateway

MONEY = {
    "ordered_amount_minor": 10_000,
    "transferred_amount_minor": 10_000,
    "amount_received_minor": 10_000,
    "fee_total_minor": 150,
    "credited_amount_minor": 9_850,
}


def deposit(object_id: str, version: int = 3, status: str = "settled", **members: Any) -> dict[str, Any]:
    """A deposit as the gateway tells it."""
    whole = {"id": object_id, "object": "deposit_order", "version": version, "status": status, "is_terminal": True}
    return whole | MONEY | members


def put_deposit(place: Operated, entity: dict[str, Any], **members: Any) -> None:
    """The row of a deposit, with other values where they are given."""
    row = entity | members
    place.connection.execute(
        "INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, is_terminal, late_slip_accepted_until,"
        " ordered_amount_minor, transferred_amount_minor, amount_received_minor, fee_total_minor,"
        " credited_amount_minor, fee_breakdown, overpayment, balance_transaction_id, our_order_id, our_user_id,"
        " updated_at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 'ord', 'usr',"
        " now() - interval '90 minutes')",
        (
            *(row["id"], row["version"], row["status"], row.get("is_terminal"), row.get("late_slip_accepted_until")),
            *(row.get(name) for name in MONEY),
            *(None if row.get(name) is None else Jsonb(row[name]) for name in ("fee_breakdown", "overpayment")),
            row.get("balance_transaction_id"),
        ),
    )


def withdrawal(object_id: str, version: int = 8, **members: Any) -> dict[str, Any]:
    """A withdrawal as the gateway tells it."""
    whole = {
        "id": object_id,
        "object": "withdrawal_order",
        "version": version,
        "status": "settled",
        "merchant_reference": f"tick-{object_id}",
        "amount_total_minor": 100_000,
        "fee_total_minor": 2675,
        "filled_minor": 100_000,
        "remaining_minor": 0,
        "fills": [{"leg_ref": "leg_1", "receipt_state": "confirmed"}],
    }
    return whole | members


def put_withdrawal(place: Operated, entity: dict[str, Any], **members: Any) -> None:
    """The row of a withdrawal."""
    row = entity | members
    place.connection.execute(
        "INSERT INTO pg_withdrawals (pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor,"
        " filled_minor, remaining_minor, refunded_minor, our_ref) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(row["id"], row["version"], row["status"], row["amount_total_minor"], row["fee_total_minor"]),
            *(row["filled_minor"], row["remaining_minor"], row.get("refunded_minor"), row["merchant_reference"]),
        ),
    )


def movement(number: int, amount_minor: int, source: str | None, target: str | None, **after: int) -> dict[str, Any]:
    """A balance transaction as the gateway tells it, a minute after the one before."""
    return {
        "id": f"btxn_{number:04}",
        "object": "balance_transaction",
        "type": "balance.credited",
        "direction": "credit",
        "amount_minor": amount_minor,
        "bucket_from": source,
        "bucket_to": target,
        "source": {"id": "dep_1", "object": "deposit_order"},
        "created_at": f"2026-05-01T{number // 60:02}:{number % 60:02}:00.5Z",
        "balance_after": {f"{bucket}_minor": amount for bucket, amount in after.items()},
    }


def put_movement(place: Operated, entity: dict[str, Any], merchant: str = MERCHANT, **members: Any) -> None:
    """The record of a balance transaction."""
    row = entity | members
    place.connection.execute(
        "INSERT INTO pg_balance_txns VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *(row["id"], row["type"], row["direction"], row["amount_minor"], row["bucket_from"], row["bucket_to"]),
            *(row["source"]["id"], row["created_at"], merchant, Jsonb(row["balance_after"])),
        ),
    )


def put_event(
    place: Operated, event_id: str, object_id: str, version: int | None, verdict: str, merchant: str = MERCHANT
) -> None:
    """An event of an object in the inbox."""
    place.connection.execute(
        "INSERT INTO pg_webhook_inbox (event_id, event_type, event_raw, received_at, processed_at, object_id,"
        " object_kind, version, merchant_id, sequence, partition, arrival_seq, source_partition, source_offset,"
        " verdict, key_id, origin) SELECT %s, 't', '{}', now(), now(), %s, 'k', %s, %s, n, 0, n, 0, n, %s, 'k1',"
        " 'webhook' FROM (SELECT count(*) AS n FROM pg_webhook_inbox) AS t",
        (event_id, object_id, version, merchant, verdict),
    )


def reconcile(place: Operated, gateway: TinyGateway, *arguments: str, code: int = 0) -> Any:
    """What the command prints as JSON."""
    own = ("--merchant", MERCHANT, "--patience", "0.05", "--json")
    done = place.command("reconcile", *arguments, *own, **gateway.environment)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def found(told: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The differences without their events."""
    return [(row["id"], row["what"], row["member"], row["here"], row["there"]) for row in told["differences"]]
