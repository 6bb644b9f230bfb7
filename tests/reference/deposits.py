"""`applyDepositEvent` of the gateway's "version guard" page, statement by statement.

Departures, all of them the contract's: the debit repeats the credit entry, missing texts are null, an absent field is
SQL NULL and never JSON null, and a credit never falls on a missing balance row.
"""

import json
from typing import Any

from tallyhook.postgres import Connection
from tests.reference.outcomes import Enqueue, Outcome
from tests.reference.reading import Json, Refused

UPSERT = """
  INSERT INTO pg_deposits (pg_deposit_id, pg_version, status, is_terminal, late_slip_accepted_until,
                           ordered_amount_minor, transferred_amount_minor, amount_received_minor, fee_total_minor,
                           credited_amount_minor, fee_breakdown, overpayment, balance_transaction_id,
                           clearing_available_at, our_order_id, our_user_id)
  VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb, %s::jsonb, %s, %s, %s, %s)
  ON CONFLICT (pg_deposit_id) DO UPDATE
    SET pg_version = EXCLUDED.pg_version,
        status = EXCLUDED.status,
        is_terminal = EXCLUDED.is_terminal,
        late_slip_accepted_until = EXCLUDED.late_slip_accepted_until,
        ordered_amount_minor = EXCLUDED.ordered_amount_minor,
        transferred_amount_minor = EXCLUDED.transferred_amount_minor,
        amount_received_minor = EXCLUDED.amount_received_minor,
        fee_total_minor = EXCLUDED.fee_total_minor,
        credited_amount_minor = EXCLUDED.credited_amount_minor,
        fee_breakdown = EXCLUDED.fee_breakdown,
        overpayment = EXCLUDED.overpayment,
        balance_transaction_id = EXCLUDED.balance_transaction_id,
        clearing_available_at = EXCLUDED.clearing_available_at,
        updated_at = now()
    WHERE pg_deposits.pg_version < EXCLUDED.pg_version
"""

APPEND_FLAG = """
  INSERT INTO pg_deposit_overpayment_flags (claim_id, pg_deposit_id, observed_deposit_version, cause, amount_minor,
                                            slip_received_at, status_snapshot, action_required_snapshot,
                                            expected_response_at, raw_flag)
  VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s::jsonb)
  ON CONFLICT (claim_id) DO NOTHING
  RETURNING claim_id
"""

SAME_FLAG = """
  SELECT 1 FROM pg_deposit_overpayment_flags
   WHERE claim_id = %s
     AND pg_deposit_id = %s
     AND cause = %s
     AND amount_minor = %s
     AND slip_received_at = %s::timestamptz
     AND status_snapshot = %s
     AND action_required_snapshot = %s
     AND expected_response_at IS NOT DISTINCT FROM %s::timestamptz
     AND raw_flag = %s::jsonb
"""

MARK_CREDITED = """
  UPDATE pg_deposits SET credited_user_at = now()
   WHERE pg_deposit_id = %s AND status = 'settled' AND credited_user_at IS NULL
"""

MARK_REVERSED = """
  UPDATE pg_deposits SET reversed_at = now()
   WHERE pg_deposit_id = %s AND status = 'reversed' AND credited_user_at IS NOT NULL AND reversed_at IS NULL
"""

APPEND_ENTRY = """
  INSERT INTO pg_user_balance_entries (entry_key, user_id, amount_minor, event_id) VALUES (%s, %s, %s, %s)
"""

MOVE_BALANCE = """
  INSERT INTO pg_user_balances AS held (user_id, balance_minor) VALUES (%s, %s)
  ON CONFLICT (user_id) DO UPDATE SET balance_minor = held.balance_minor + EXCLUDED.balance_minor
  RETURNING balance_minor
"""


def apply_deposit(t: Connection, event: Json, correlation: tuple[str, str], enqueue: Enqueue) -> Outcome:
    """Applies one event to its deposit, inside of the caller's transaction; raises Refused on a claim's collision.

    Args:
        t: the connection, in a transaction.
        event: the whole event, already checked.
        correlation: our_order_id and our_user_id.
        enqueue: writes one effect.
    """
    o = event["data"]["object"]
    our_order_id, our_user_id = correlation
    changed = t.execute(
        UPSERT,
        (
            *(o["id"], o["version"], o["status"], o.get("is_terminal"), o.get("late_slip_accepted_until")),
            *(o.get("ordered_amount_minor"), o.get("transferred_amount_minor"), o.get("amount_received_minor")),
            *(o.get("fee_total_minor"), o.get("credited_amount_minor")),
            *(_jsonb(o.get("fee_breakdown")), _jsonb(o.get("overpayment"))),
            *(o.get("balance_transaction_id"), o.get("clearing_available_at"), our_order_id, our_user_id),
        ),
    ).rowcount
    if o.get("overpayment") is not None:
        keep_flag(t, o)
    if changed == 0:
        return "late", "older_version"

    match o["status"]:
        case "settled":
            return "advanced", _credit(t, event, correlation, enqueue)
        case "reversed":
            return "advanced", _debit(t, event, our_order_id, enqueue)
        case "expired" | "canceled":
            if o.get("is_terminal") is False and o.get("late_slip_accepted_until"):
                payload = {"order_id": our_order_id, "until": o["late_slip_accepted_until"]}
                enqueue("show_late_slip", payload, f"{event['id']}:show_late_slip")
            else:
                code = o.get("cancel_reason_code")
                reason = "expired" if code is None else code
                enqueue("fail_order", {"order_id": our_order_id, "reason": reason}, f"{event['id']}:fail_order")
        case "under_review":
            payload = {"order_id": our_order_id, "message": _first_reason(o.get("review"))}
            enqueue("show_pending_review", payload, f"{event['id']}:show_pending_review")
        case "rejected":
            payload = {"order_id": our_order_id, "reason": _display_th(o.get("rejection"))}
            enqueue("fail_order", payload, f"{event['id']}:fail_order")
        case _:
            payload = {"order_id": our_order_id, "status": o["status"]}
            enqueue("update_order_status", payload, f"{event['id']}:update_order_status")
    return "advanced", None


def keep_flag(t: Connection, o: Json) -> None:
    """Appends the overpayment flag, also from a stale event; raises Refused when the claim is known otherwise."""
    flag = o["overpayment"]
    content = (
        *(flag["cause"], flag["amount_minor"], flag["slip_received_at"], flag["status"], flag["action_required"]),
        *(flag.get("expected_response_at"), _jsonb(flag)),
    )
    if t.execute(APPEND_FLAG, (flag["claim_id"], o["id"], o["version"], *content)).rowcount == 1:
        return
    if t.execute(SAME_FLAG, (flag["claim_id"], o["id"], *content)).fetchone() is None:
        raise Refused("overpayment_collision", f"claim {flag['claim_id']} was seen with other content")


def _credit(t: Connection, event: Json, correlation: tuple[str, str], enqueue: Enqueue) -> str | None:
    o = event["data"]["object"]
    our_order_id, our_user_id = correlation
    if t.execute(MARK_CREDITED, (o["id"],)).rowcount != 1:
        return "already_credited"
    amount = o["amount_received_minor"]
    _move(t, event, f"deposit:{o['id']}:credit", our_user_id, amount, our_order_id, enqueue)
    payload = {
        "order_id": our_order_id,
        "partial": o.get("partial") is True,
        "received": amount,
        "ordered": o["ordered_amount_minor"],
    }
    enqueue("release_goods", payload, f"deposit:{o['id']}:release_goods")
    return None


def _debit(t: Connection, event: Json, our_order_id: str, enqueue: Enqueue) -> str | None:
    deposit_id = event["data"]["object"]["id"]
    if t.execute(MARK_REVERSED, (deposit_id,)).rowcount != 1:
        credited = t.execute(
            "SELECT credited_user_at IS NOT NULL FROM pg_deposits WHERE pg_deposit_id = %s", (deposit_id,)
        ).fetchone()
        return "already_reversed" if credited is not None and credited[0] else "never_credited"
    entry = t.execute(
        "SELECT user_id, amount_minor FROM pg_user_balance_entries WHERE entry_key = %s",
        (f"deposit:{deposit_id}:credit",),
    ).fetchone()
    if entry is None:
        raise AssertionError(f"{deposit_id} is marked as credited and has no credit entry")
    _move(t, event, f"deposit:{deposit_id}:debit", entry[0], -entry[1], our_order_id, enqueue)
    enqueue("hold_goods", {"order_id": our_order_id}, f"deposit:{deposit_id}:hold_goods")
    return None


def _move(
    t: Connection, event: Json, entry_key: str, user_id: str, amount: int, our_order_id: str, enqueue: Enqueue
) -> None:
    t.execute(APPEND_ENTRY, (entry_key, user_id, amount, event["id"]))
    balance = t.execute(MOVE_BALANCE, (user_id, amount)).fetchone()
    entry = {
        "entry_key": entry_key,
        "user_id": user_id,
        "amount_minor": amount,
        "balance_after_minor": balance[0] if balance is not None else None,
        "pg_deposit_id": event["data"]["object"]["id"],
        "our_order_id": our_order_id,
    }
    enqueue("balance_entry", entry, entry_key)


def _first_reason(review: Any) -> str | None:
    reasons = review.get("reasons") if isinstance(review, dict) else None
    return _display_th(reasons[0]) if isinstance(reasons, list) and reasons else None


def _display_th(texts: Any) -> str | None:
    text = texts.get("display_th") if isinstance(texts, dict) else None
    return text if isinstance(text, str) else None


def _jsonb(value: object) -> str | None:
    return None if value is None else json.dumps(value)
