"""`applyImmutable` of the gateway's "version guard" page: balance transactions, deduped on their id.

One departure, the contract's: the same id with other content is quarantined, not ignored.
"""

from tallyhook.postgres import Connection
from tests.reference.outcomes import Outcome
from tests.reference.reading import Json, Refused

# balance_after is taken from the bytes as they came: it is kept raw, and JSON null is SQL NULL.
APPEND = """
  INSERT INTO pg_balance_txns (btxn_id, type, direction, amount_minor, bucket_from, bucket_to, source_id, created_at,
                               merchant_id, balance_after)
  SELECT %s, %s, %s, %s, %s, %s, %s, %s::timestamptz, merchant_id,
         NULLIF(event #> '{data,object,balance_after}', 'null'::jsonb)
    FROM pg_webhook_inbox WHERE event_id = %s
  ON CONFLICT (btxn_id) DO NOTHING
"""

SAME = """
  SELECT 1 FROM pg_balance_txns
   WHERE btxn_id = %s
     AND type = %s
     AND direction = %s
     AND amount_minor = %s
     AND bucket_from IS NOT DISTINCT FROM %s
     AND bucket_to IS NOT DISTINCT FROM %s
     AND source_id IS NOT DISTINCT FROM %s
     AND created_at = %s::timestamptz
"""


def apply_immutable(t: Connection, event: Json) -> Outcome:
    """Records one balance transaction, inside of the caller's transaction; the event is in the inbox by then.

    Raises:
        Refused: its id is known with other content.
    """
    b = event["data"]["object"]
    source = b.get("source") or {}
    content = (
        *(b["id"], b["type"], b["direction"], b["amount_minor"], b.get("bucket_from"), b.get("bucket_to")),
        *(source.get("id"), b["created_at"]),
    )
    if t.execute(APPEND, (*content, event["id"])).rowcount == 1:
        return "immutable", None
    if t.execute(SAME, content).fetchone() is None:
        raise Refused("transaction_collision", f"{b['id']} was seen with other content")
    return "immutable", "already_recorded"
