"""`tallyhook parked`: what waits, for how long, and for what."""

from tests.integration.operations.operated import Operated

INSERT = """
INSERT INTO pg_webhook_inbox (
  event_id, event_type, event_raw, received_at, processed_at, parked_reason, object_id, object_kind, version,
  merchant_id, sequence, partition, arrival_seq, source_partition, source_offset, verdict, key_id, origin)
SELECT 'evt_' || hours, 'deposit.open', '{}', now() - hours * interval '1 hour', done, reason, 'dep_' || hours,
       'deposit_order', hours, 'm', hours, 0, hours, 0, hours, 'parked', 'k', 'webhook'
  FROM (VALUES (1, NULL::timestamptz, 'correlation'), (50, NULL, 'snapshot'), (93, NULL, 'correlation'),
               (200, now(), NULL)) AS v(hours, done, reason)
RETURNING event_id
"""


def test_what_waits_is_listed_oldest_first(quiet: Operated) -> None:
    """With age, object, what it waits for and the next step; those over 92 h are marked; exit code 0."""
    assert quiet.json("parked") == {"total": 0, "overdue": 0, "events": []}
    quiet.rows(INSERT)
    found = quiet.json("parked")
    assert (found["total"], found["overdue"]) == (3, 1)
    told = [(e["object_id"], e["version"], e["reason"], round(e["age_hours"]), e["overdue"]) for e in found["events"]]
    assert told == [
        ("dep_93", 93, "correlation", 93, True),
        ("dep_50", 50, "snapshot", 50, False),
        ("dep_1", 1, "correlation", 1, False),
    ]
    assert "pg_deposit_correlations" in found["events"][0]["next_step"]
    assert "ยังไม่ทราบว่าเงินฝากนี้" in found["events"][0]["waits_for_th"]


def test_age_reason_and_limit_narrow_it(quiet: Operated) -> None:
    """The total counts what the limit leaves out."""
    quiet.rows(INSERT)
    assert [e["event_id"] for e in quiet.json("parked", "--older-than", "49.5")["events"]] == ["evt_93", "evt_50"]
    assert [e["event_id"] for e in quiet.json("parked", "--reason", "snapshot")["events"]] == ["evt_50"]
    limited = quiet.json("parked", "--limit", "1")
    assert (limited["total"], len(limited["events"])) == (3, 1)
    text = quiet.command("parked", "--limit", "1", "--lang", "th")
    assert text.returncode == 0
    assert "1 of 3; 1 wait for more than 92 h" in text.stdout
    assert "!" in text.stdout
    assert "dep_93" in text.stdout
