"""The chunks of a withdrawal: fills append, reversals are tombstones, and neither asks for the version."""

from tallyhook.postgres import Connection
from tests.reference.outcomes import Enqueue
from tests.reference.reading import Json, Refused

APPEND_FILL = """
  INSERT INTO pg_withdrawal_fills (leg_ref, pg_withdrawal_id, sequence, amount_minor, fee_recognized_minor, settled_at,
                                   balance_transaction_id, auto_confirm_at)
  VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
  ON CONFLICT (leg_ref) DO NOTHING
"""

SAME_FILL = """
  SELECT 1 FROM pg_withdrawal_fills
   WHERE leg_ref = %s
     AND pg_withdrawal_id = %s
     AND sequence IS NOT DISTINCT FROM %s::smallint
     AND amount_minor = %s
     AND fee_recognized_minor IS NOT DISTINCT FROM %s::bigint
     AND settled_at IS NOT DISTINCT FROM %s::timestamptz
     AND balance_transaction_id IS NOT DISTINCT FROM %s
     AND auto_confirm_at IS NOT DISTINCT FROM %s::timestamptz
"""

REVERSED_OTHERWISE = """
  SELECT 1 FROM pg_withdrawal_fill_reversals
   WHERE leg_ref = %s
     AND (pg_withdrawal_id <> %s OR amount_minor <> %s OR reverses_balance_transaction_id <> %s)
"""

MARK_FILL_BY_TOMBSTONE = """
  UPDATE pg_withdrawal_fills f SET reversed_at = r.reversed_at
    FROM pg_withdrawal_fill_reversals r
   WHERE f.leg_ref = %s AND r.leg_ref = f.leg_ref
     AND r.pg_withdrawal_id = f.pg_withdrawal_id AND f.reversed_at IS NULL
"""

APPEND_TOMBSTONE = """
  INSERT INTO pg_withdrawal_fill_reversals (leg_ref, pg_withdrawal_id, reason_code, reverses_balance_transaction_id,
                                            reversal_balance_transaction_id, amount_minor, replacement_withdrawal_id,
                                            reversed_at, status_snapshot)
  VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
  ON CONFLICT DO NOTHING
"""

SAME_TOMBSTONE = """
  SELECT 1 FROM pg_withdrawal_fill_reversals
   WHERE leg_ref = %s
     AND pg_withdrawal_id = %s
     AND reason_code = %s
     AND reverses_balance_transaction_id = %s
     AND reversal_balance_transaction_id = %s
     AND amount_minor = %s
     AND replacement_withdrawal_id IS NOT DISTINCT FROM %s
"""

NAMED_BY_ANOTHER_LEG = """
  SELECT 1 FROM pg_withdrawal_fill_reversals
   WHERE leg_ref <> %(leg_ref)s
     AND (reverses_balance_transaction_id IN (%(reversed)s, %(reversing)s)
          OR reversal_balance_transaction_id IN (%(reversed)s, %(reversing)s))
"""

FILLED_OTHERWISE = """
  SELECT 1 FROM pg_withdrawal_fills
   WHERE leg_ref = %s AND (pg_withdrawal_id <> %s OR amount_minor <> %s OR balance_transaction_id <> %s)
"""

MARK_FILL = """
  UPDATE pg_withdrawal_fills SET reversed_at = COALESCE(reversed_at, %s)
   WHERE leg_ref = %s AND pg_withdrawal_id = %s
"""

REOPEN = """
  UPDATE pg_withdrawals
     SET closed_at = NULL,
         replacement_withdrawal_id = COALESCE(%s, replacement_withdrawal_id),
         updated_at = now()
   WHERE pg_withdrawal_id = %s
"""

MARK_COMPENSATED = """
  UPDATE pg_withdrawal_fill_reversals SET effect_enqueued_at = now()
   WHERE leg_ref = %s AND effect_enqueued_at IS NULL
"""


def keep_fill(t: Connection, event: Json) -> bool:
    """Appends the chunk, also from a stale event; gives whether it is new.

    Raises:
        Refused: it, or its reversal, is known otherwise.
    """
    o, f = event["data"]["object"], event["data"]["fill"]
    content = (
        *(f["leg_ref"], o["id"], f.get("sequence"), f["amount_minor"], f.get("fee_recognized_minor")),
        *(f.get("settled_at"), f.get("balance_transaction_id"), f.get("auto_confirm_at")),
    )
    appended = t.execute(APPEND_FILL, content).rowcount == 1
    if not appended and t.execute(SAME_FILL, content).fetchone() is None:
        raise Refused("fill_collision", f"leg {f['leg_ref']} was seen with other content")
    # Where the fill names no transaction the comparison is null, which contradicts nothing.
    told = (f["leg_ref"], o["id"], f["amount_minor"], f.get("balance_transaction_id"))
    if t.execute(REVERSED_OTHERWISE, told).fetchone() is not None:
        raise Refused("fill_collision", f"leg {f['leg_ref']} was reversed with other content")
    t.execute(MARK_FILL_BY_TOMBSTONE, (f["leg_ref"],))
    return appended


def keep_reversal(t: Connection, event: Json, enqueue: Enqueue) -> bool:
    """Keeps the tombstone, opens the order again and compensates, once a chunk; gives whether it did that now.

    Raises:
        Refused: the reversal, or one of its balance transactions, is known otherwise, or the chunk itself is.
    """
    o, f, r = event["data"]["object"], event["data"]["fill"], event["data"]["reversal"]
    replacement = event["data"].get("replacement_withdrawal_id")
    reversed_id, reversing_id = r["reverses_balance_transaction_id"], r["balance_transaction_id"]
    content = (f["leg_ref"], o["id"], r["reason_code"], reversed_id, reversing_id, f["amount_minor"], replacement)
    t.execute(APPEND_TOMBSTONE, (*content, event["created_at"], o["status"]))
    if t.execute(SAME_TOMBSTONE, content).fetchone() is None:
        raise Refused("reversal_collision", f"the reversal of leg {f['leg_ref']} was seen with other content")
    transactions = {"leg_ref": f["leg_ref"], "reversed": reversed_id, "reversing": reversing_id}
    if t.execute(NAMED_BY_ANOTHER_LEG, transactions).fetchone() is not None:
        raise Refused("reversal_collision", f"{reversed_id} or {reversing_id} belongs to another leg's reversal")
    if t.execute(FILLED_OTHERWISE, (f["leg_ref"], o["id"], f["amount_minor"], reversed_id)).fetchone() is not None:
        raise Refused("reversal_collision", f"the fill of leg {f['leg_ref']} has other content")
    t.execute(MARK_FILL, (event["created_at"], f["leg_ref"], o["id"]))
    t.execute(REOPEN, (replacement, o["id"]))
    if t.execute(MARK_COMPENSATED, (f["leg_ref"],)).rowcount != 1:
        return False
    payload = {
        "withdrawal_id": o["id"],
        "leg_ref": f["leg_ref"],
        "amount_minor": f["amount_minor"],
        "reason_code": r["reason_code"],
        "reverses_balance_transaction_id": reversed_id,
        "reversal_balance_transaction_id": reversing_id,
        "replacement_withdrawal_id": replacement,
    }
    enqueue("compensate_reversed_fill", payload, f"withdrawal-fill:{f['leg_ref']}:reverse:compensate_reversed_fill")
    return True
