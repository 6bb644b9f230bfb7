"""`applyWithdrawalEvent` of the gateway's "handling partial fills" page, statement by statement.

Departures, all of them the contract's: absent fields keep their value and effects read the row; what is set once is set
by the first event that has it; a contradictory fill is quarantined as a contradictory reversal is; a settled tombstone
keeps the order from being closed; a reversal that ends an order emits that one-shot too; `refund_unfilled` has three
members more.
"""

from typing import Any

from psycopg.rows import dict_row

from tallyhook.postgres import Connection
from tests.reference.chunks import keep_fill, keep_reversal
from tests.reference.outcomes import Enqueue, Outcome
from tests.reference.reading import Json, Refused, is_bigint

BUILD = """
  INSERT INTO pg_withdrawals (pg_withdrawal_id, pg_version, status, amount_total_minor, fee_total_minor,
                              total_locked_minor, filled_minor, remaining_minor, refunded_minor, fee_recognized_minor,
                              settled_splits, max_splits, our_ref)
  VALUES (%(id)s, %(version)s, %(status)s, %(amount_total_minor)s, %(fee_total_minor)s, %(total_locked_minor)s,
          COALESCE(%(filled_minor)s, 0), %(remaining_minor)s, %(refunded_minor)s, %(fee_recognized_minor)s,
          %(settled_splits)s, %(max_splits)s, %(our_ref)s)
  ON CONFLICT (pg_withdrawal_id) DO NOTHING
"""

ADVANCE = """
  UPDATE pg_withdrawals
     SET pg_version = %(version)s,
         status = %(status)s,
         filled_minor = COALESCE(%(filled_minor)s, filled_minor),
         remaining_minor = COALESCE(%(remaining_minor)s, remaining_minor),
         refunded_minor = COALESCE(%(refunded_minor)s, refunded_minor),
         fee_recognized_minor = COALESCE(%(fee_recognized_minor)s, fee_recognized_minor),
         settled_splits = COALESCE(%(settled_splits)s, settled_splits),
         updated_at = now()
   WHERE pg_withdrawal_id = %(id)s AND pg_version < %(version)s
"""

SET_ONCE = """
  UPDATE pg_withdrawals
     SET fee_total_minor = COALESCE(fee_total_minor, %(fee_total_minor)s),
         total_locked_minor = COALESCE(total_locked_minor, %(total_locked_minor)s),
         max_splits = COALESCE(max_splits, %(max_splits)s),
         our_ref = COALESCE(our_ref, %(our_ref)s)
   WHERE pg_withdrawal_id = %(id)s
"""

REVERSED_AFTER_SETTLEMENT = """
  SELECT 1 FROM pg_withdrawal_fill_reversals WHERE pg_withdrawal_id = %s AND status_snapshot = 'settled'
"""

CLOSE = """
  UPDATE pg_withdrawals SET closed_at = now()
   WHERE pg_withdrawal_id = %s AND status = 'settled' AND remaining_minor = 0 AND closed_at IS NULL
"""

MARK_CLOSE_ENQUEUED = """
  UPDATE pg_withdrawals SET close_enqueued_at = now() WHERE pg_withdrawal_id = %s AND close_enqueued_at IS NULL
"""

MARK_REFUNDED = """
  UPDATE pg_withdrawals SET refund_enqueued_at = now()
   WHERE pg_withdrawal_id = %s AND status IN ('expired', 'canceled') AND refund_enqueued_at IS NULL
"""

MARK_RELEASED = """
  UPDATE pg_withdrawals SET user_lock_released_at = now()
   WHERE pg_withdrawal_id = %s AND status = 'rejected' AND user_lock_released_at IS NULL
"""


def can_build(event: Json) -> bool:
    """Whether the event has what a row cannot be without."""
    o = event["data"]["object"]
    return o.get("amount_total_minor") is not None and o.get("remaining_minor") is not None


def apply_withdrawal(t: Connection, event: Json, enqueue: Enqueue) -> Outcome:
    """Applies one event to its withdrawal, inside of the caller's transaction.

    Args:
        t: the connection, in a transaction.
        event: the whole event, already checked; it builds the row, or the row is there.
        enqueue: writes one effect.

    Raises:
        Refused: its fill or reversal contradicts what is known, or an amount to be told is beyond bigint.
    """
    o = event["data"]["object"]
    totals = {**_totals(o), "our_ref": our_ref(o)}
    advanced = can_build(event) and t.execute(BUILD, totals).rowcount == 1
    if not advanced:
        advanced = t.execute(ADVANCE, totals).rowcount == 1
        t.execute(SET_ONCE, totals)
    if event["type"] == "withdrawal.fill_reversed":
        # A delta of money apart from the version guard: a stale event still compensates, once a chunk.
        compensated = keep_reversal(t, event, enqueue)
        if not advanced:
            return "late", "late_fact" if compensated else "older_version"
        reason = _end(t, o, enqueue) if o["status"] in ("expired", "canceled", "rejected") else None
        return "advanced", reason if compensated else "already_compensated"
    appended = event["type"] == "withdrawal.filled" and keep_fill(t, event)
    if not advanced:
        return "late", "late_fact" if appended else "older_version"
    match o["status"]:
        case "partially_filled":
            row = _row(t, o)
            payload = {name: row[name] for name in ("filled_minor", "amount_total_minor")}
            enqueue("show_progress", {"ticket": row["our_ref"], **payload}, f"{event['id']}:show_progress")
        case "settled":
            return "advanced", _close(t, o, enqueue)
        case "expired" | "canceled" | "rejected":
            return "advanced", _end(t, o, enqueue)
        case _:
            payload = {"ticket": _row(t, o)["our_ref"], "status": o["status"]}
            enqueue("update_local_status", payload, f"{event['id']}:update_local_status")
    return "advanced", None


def our_ref(o: Json) -> str | None:
    """The merchant's own reference of the order, as far as this snapshot tells."""
    metadata = o.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    for found in (o.get("merchant_reference"), metadata.get("ticket"), metadata.get("payout_id")):
        if isinstance(found, str) and found:
            return found
    return None


def _close(t: Connection, o: Json, enqueue: Enqueue) -> str | None:
    row = _row(t, o)
    if row["remaining_minor"] != 0:
        return "not_all_filled"
    if t.execute(REVERSED_AFTER_SETTLEMENT, (o["id"],)).fetchone() is not None:
        return "reversed_after_settlement"
    closed = t.execute(CLOSE, (o["id"],)).rowcount == 1
    # closed_at is taken back by a reversal; what left once does not leave again.
    if not closed or t.execute(MARK_CLOSE_ENQUEUED, (o["id"],)).rowcount != 1:
        return "already_closed"
    payload = {"withdrawal_id": o["id"], "ticket": row["our_ref"]}
    enqueue("close_withdrawal", payload, f"withdrawal:{o['id']}:close_withdrawal")
    return None


def _end(t: Connection, o: Json, enqueue: Enqueue) -> str | None:
    row = _row(t, o)
    payload = {"withdrawal_id": o["id"], "ticket": row["our_ref"]}
    if o["status"] == "rejected":
        if t.execute(MARK_RELEASED, (o["id"],)).rowcount != 1:
            return "already_released"
        enqueue("release_user_lock", payload, f"withdrawal:{o['id']}:release_user_lock")
        return None
    if t.execute(MARK_REFUNDED, (o["id"],)).rowcount != 1:
        return "already_refunded"
    recognized = row["fee_recognized_minor"]
    unused = _sum(row["fee_total_minor"], None if recognized is None else -recognized)
    payload |= {
        "refunded_minor": row["refunded_minor"],
        "fee_unused_minor": unused,
        "release_minor": _sum(row["refunded_minor"], unused),
        "debited_minor": _sum(row["filled_minor"], recognized),
    }
    enqueue("refund_unfilled", payload, f"withdrawal:{o['id']}:refund_unfilled")
    return None


def _totals(o: Json) -> Json:
    names = (
        *("id", "version", "status", "amount_total_minor", "fee_total_minor", "total_locked_minor", "filled_minor"),
        *("remaining_minor", "refunded_minor", "fee_recognized_minor", "settled_splits", "max_splits"),
    )
    return {name: o.get(name) for name in names}


def _row(t: Connection, o: Json) -> dict[str, Any]:
    cursor = t.cursor(row_factory=dict_row).execute(
        "SELECT * FROM pg_withdrawals WHERE pg_withdrawal_id = %s", (o["id"],)
    )
    row = cursor.fetchone()
    if row is None:
        raise AssertionError(f"{o['id']} has no row")
    return row


def _sum(one: int | None, other: int | None) -> int | None:
    """Null if an operand is; raises Refused for what no bigint holds."""
    if one is None or other is None:
        return None
    if not is_bigint(one + other):
        raise Refused("body_shape", f"{one + other} is beyond bigint")
    return one + other
