"""Faults to be planted in the database, and which checks must find them."""

from dataclasses import dataclass
from typing import LiteralString

from tallyhook.operations.audit.findings import CheckName

# Each chooses one row of the traffic that went before; the statements of a fault find its name as %(it)s.
LATE_EVENT = (
    "SELECT event_id FROM pg_webhook_inbox i WHERE verdict = 'late'"
    " AND NOT EXISTS (SELECT FROM redeliveries r WHERE r.event_id = i.event_id) ORDER BY event_id LIMIT 1"
)
DEPOSIT = "SELECT pg_deposit_id FROM pg_deposits WHERE pg_version > 2 ORDER BY pg_deposit_id LIMIT 1"
USER = "SELECT user_id FROM pg_user_balances ORDER BY user_id LIMIT 1"
EFFECT = "SELECT dedupe_key FROM pg_outbox WHERE topic = 'fail_order' AND seq > 0 ORDER BY partition, seq LIMIT 1"
WITHDRAWAL = "SELECT 'wdr_odd'"
CLOSE = "SELECT 'withdrawal:wdr_odd:close_withdrawal'"
REFUND = "SELECT 'withdrawal:wdr_half:refund_unfilled'"
COMPENSATION = "SELECT 'withdrawal-fill:leg_3:reverse:compensate_reversed_fill'"
DEBIT = "SELECT entry_key FROM pg_user_balance_entries WHERE amount_minor < 0 ORDER BY entry_key LIMIT 1"
CREDIT = "SELECT entry_key FROM pg_user_balance_entries WHERE amount_minor > 0 ORDER BY entry_key LIMIT 1"
REDELIVERY = "SELECT event_id FROM redeliveries ORDER BY event_id LIMIT 1"
PARTITION = (
    "SELECT partition FROM sink_offsets WHERE topic = 'tallyhook.state-changes' AND next_outbox_seq > 5"
    " ORDER BY partition LIMIT 1"
)

RAISE_ARRIVALS = (
    "UPDATE sink_offsets SET next_arrival_seq = next_arrival_seq + 1"
    " WHERE topic = 'tallyhook.state-changes' AND partition = %(it)s"
)
RAISE_OUTBOX = (
    "UPDATE sink_offsets SET next_outbox_seq = next_outbox_seq + 1"
    " WHERE topic = 'tallyhook.state-changes' AND partition = %(it)s"
)
CREDIT_AGAIN = (
    "INSERT INTO pg_user_balance_entries (entry_key, user_id, amount_minor, event_id)"
    " SELECT entry_key || '-again', user_id, amount_minor, event_id FROM pg_user_balance_entries"
    " WHERE entry_key = %(it)s"
)
PAY_AGAIN = (
    "UPDATE pg_user_balances b SET balance_minor = balance_minor + e.amount_minor"
    " FROM pg_user_balance_entries e WHERE e.entry_key = %(it)s AND e.user_id = b.user_id"
)
EFFECT_AGAIN = (
    "INSERT INTO pg_outbox (partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key,"
    " causation_id, version, received_at)"
    " SELECT o.partition, s.next_outbox_seq, o.aggregatetype, o.aggregateid, o.type, o.topic, o.payload,"
    " o.dedupe_key || '-again', o.causation_id, o.version, o.received_at FROM pg_outbox o"
    " JOIN sink_offsets s ON s.partition = o.partition AND s.topic = 'tallyhook.state-changes'"
    " WHERE o.dedupe_key = %(it)s"
)
NUMBER_IT = (
    "UPDATE sink_offsets s SET next_outbox_seq = next_outbox_seq + 1 FROM pg_outbox o"
    " WHERE o.dedupe_key = %(it)s AND s.partition = o.partition AND s.topic = 'tallyhook.state-changes'"
)
ANNOUNCE_OTHERWISE = (
    "UPDATE pg_outbox SET payload = jsonb_set(payload, ARRAY['balance_after_minor'], '7') WHERE dedupe_key = %(it)s"
)


@dataclass(frozen=True)
class Fault:
    """What is done, and what must come of it.

    Args:
        choice: gives the name of what it is done to.
        statements: each must change something.
        red: the checks that must fail; no other may.
        named_in: the one of them whose counterexample names it.
    """

    choice: LiteralString
    statements: tuple[LiteralString, ...]
    red: frozenset[CheckName]
    named_in: CheckName


def fault(choice: LiteralString, *statements: LiteralString, red: tuple[CheckName, ...]) -> Fault:
    """A fault that is named in the first check of `red`."""
    return Fault(choice, statements, frozenset(red), red[0])


FAULTS: dict[str, Fault] = {
    "a deleted inbox row": fault(
        LATE_EVENT,
        "DELETE FROM pg_webhook_inbox WHERE event_id = %(it)s",
        red=("deliveries", "arrival_numbers"),
    ),
    "changed bytes": fault(
        LATE_EVENT,
        "UPDATE pg_webhook_inbox SET event_raw = event_raw || ' ' WHERE event_id = %(it)s",
        red=("deliveries",),
    ),
    "a redelivery that is not noted": fault(
        REDELIVERY, "DELETE FROM redeliveries WHERE event_id = %(it)s", red=("deliveries",)
    ),
    "a quarantined event that is gone": fault(
        "SELECT 'evt_money'", "DELETE FROM quarantined_events WHERE event_id = %(it)s", red=("deliveries",)
    ),
    "a dead letter that is gone": fault(
        "SELECT 'evt_no_mode'", "DELETE FROM quarantined_events WHERE event_id = %(it)s", red=("deliveries",)
    ),
    "a skipped arrival number": fault(PARTITION, RAISE_ARRIVALS, red=("arrival_numbers",)),
    "a missing outbox number": fault(PARTITION, RAISE_OUTBOX, red=("outbox_numbers",)),
    "a deleted outbox row": fault(
        EFFECT, "DELETE FROM pg_outbox WHERE dedupe_key = %(it)s", red=("outbox", "outbox_numbers", "effects")
    ),
    "a lowered version": fault(
        DEPOSIT,
        "UPDATE pg_deposits SET pg_version = pg_version - 1 WHERE pg_deposit_id = %(it)s",
        red=("aggregates",),
    ),
    "a column of an older state": fault(
        "SELECT 'dep_odd'",
        "UPDATE pg_deposits SET fee_breakdown = NULL WHERE pg_deposit_id = %(it)s",
        red=("aggregates",),
    ),
    "a mark that is gone": fault(
        "SELECT 'dep_odd'",
        "UPDATE pg_deposits SET reversed_at = NULL WHERE pg_deposit_id = %(it)s",
        red=("aggregates",),
    ),
    "another owner": fault(
        DEPOSIT,
        "UPDATE pg_deposit_correlations SET our_user_id = 'somebody_else' WHERE pg_deposit_id = %(it)s",
        red=("aggregates",),
    ),
    "a changed flag": fault(
        "SELECT 'clm_late'",
        "UPDATE pg_deposit_overpayment_flags SET observed_deposit_version = 4 WHERE claim_id = %(it)s",
        red=("flags",),
    ),
    "a flag that is gone": fault(
        "SELECT 'clm_late'", "DELETE FROM pg_deposit_overpayment_flags WHERE claim_id = %(it)s", red=("flags",)
    ),
    "another verdict": fault(
        LATE_EVENT,
        "UPDATE pg_webhook_inbox SET verdict = 'advanced', reason = NULL WHERE event_id = %(it)s",
        red=("verdicts",),
    ),
    "a changed balance": fault(
        USER,
        "UPDATE pg_user_balances SET balance_minor = balance_minor + 1 WHERE user_id = %(it)s",
        red=("ledger",),
    ),
    "a debit that is gone": fault(
        DEBIT, "DELETE FROM pg_user_balance_entries WHERE entry_key = %(it)s", red=("ledger",)
    ),
    "a second credit": fault(CREDIT, CREDIT_AGAIN, PAY_AGAIN, red=("ledger",)),
    "a balance that was announced wrongly": fault(CREDIT, ANNOUNCE_OTHERWISE, red=("effects", "ledger")),
    "a doubled effect": fault(EFFECT, EFFECT_AGAIN, NUMBER_IT, red=("outbox",)),
    "a changed total of a withdrawal": fault(
        WITHDRAWAL,
        "UPDATE pg_withdrawals SET filled_minor = filled_minor - 1 WHERE pg_withdrawal_id = %(it)s",
        red=("aggregates",),
    ),
    "a member that is set once and is gone": fault(
        WITHDRAWAL, "UPDATE pg_withdrawals SET our_ref = NULL WHERE pg_withdrawal_id = %(it)s", red=("aggregates",)
    ),
    "a withdrawal without a row": fault(
        WITHDRAWAL, "DELETE FROM pg_withdrawals WHERE pg_withdrawal_id = %(it)s", red=("aggregates",)
    ),
    "a withdrawal that is closed and must not be": fault(
        "SELECT 'wdr_half'",
        "UPDATE pg_withdrawals SET closed_at = now() WHERE pg_withdrawal_id = %(it)s",
        red=("aggregates",),
    ),
    "a withdrawal that is open and must not be": fault(
        WITHDRAWAL, "UPDATE pg_withdrawals SET closed_at = NULL WHERE pg_withdrawal_id = %(it)s", red=("aggregates",)
    ),
    "a withdrawal that counts as never closed": fault(
        WITHDRAWAL,
        "UPDATE pg_withdrawals SET close_enqueued_at = NULL WHERE pg_withdrawal_id = %(it)s",
        red=("aggregates",),
    ),
    "a withdrawal that is closed twice": fault(CLOSE, EFFECT_AGAIN, NUMBER_IT, red=("outbox",)),
    "a withdrawal that is never closed": fault(
        CLOSE, "DELETE FROM pg_outbox WHERE dedupe_key = %(it)s", red=("outbox", "outbox_numbers", "effects")
    ),
    "a missing chunk": fault(
        "SELECT 'leg_1'", "DELETE FROM pg_withdrawal_fills WHERE leg_ref = %(it)s", red=("chunks",)
    ),
    "a chunk of another withdrawal": fault(
        "SELECT 'leg_1'",
        "UPDATE pg_withdrawal_fills SET pg_withdrawal_id = 'wdr_no' WHERE leg_ref = %(it)s",
        red=("chunks",),
    ),
    "a chunk that nobody sent": fault(
        "SELECT 'leg_nobody'",
        "INSERT INTO pg_withdrawal_fills (leg_ref, pg_withdrawal_id, amount_minor) VALUES (%(it)s, 'wdr_odd', 7)",
        red=("chunks",),
    ),
    "a chunk that is not marked as taken back": fault(
        "SELECT 'leg_2'", "UPDATE pg_withdrawal_fills SET reversed_at = NULL WHERE leg_ref = %(it)s", red=("chunks",)
    ),
    "a missing reversal": fault(
        "SELECT 'leg_3'", "DELETE FROM pg_withdrawal_fill_reversals WHERE leg_ref = %(it)s", red=("chunks",)
    ),
    "a transaction of two reversals": fault(
        "SELECT 'leg_3'",
        "UPDATE pg_withdrawal_fill_reversals SET reversal_balance_transaction_id = 'btx_leg_2' WHERE leg_ref = %(it)s",
        red=("chunks",),
    ),
    "a missing compensation": fault(
        COMPENSATION, "DELETE FROM pg_outbox WHERE dedupe_key = %(it)s", red=("outbox", "outbox_numbers", "effects")
    ),
    "another amount in a refund": fault(
        REFUND,
        "UPDATE pg_outbox SET payload = jsonb_set(payload, ARRAY['release_minor'], '30000') WHERE dedupe_key = %(it)s",
        red=("outbox", "effects"),
    ),
    "a changed balance transaction": fault(
        "SELECT 'btx_move'",
        "UPDATE pg_balance_txns SET amount_minor = amount_minor + 1 WHERE btxn_id = %(it)s",
        red=("transactions",),
    ),
    "another balance after it": fault(
        "SELECT 'btx_move'",
        "UPDATE pg_balance_txns SET balance_after = NULL WHERE btxn_id = %(it)s",
        red=("transactions",),
    ),
    "a missing balance transaction": fault(
        "SELECT 'btx_other'", "DELETE FROM pg_balance_txns WHERE btxn_id = %(it)s", red=("transactions",)
    ),
    "a balance transaction that nobody sent": fault(
        "SELECT 'btx_nobody'",
        "INSERT INTO pg_balance_txns (btxn_id, type, direction, amount_minor, created_at)"
        " VALUES (%(it)s, 'fee', 'debit', 7, now())",
        red=("transactions",),
    ),
    "another reason": fault(
        "SELECT 'evt_w8'", "UPDATE pg_webhook_inbox SET reason = NULL WHERE event_id = %(it)s", red=("verdicts",)
    ),
    "another reason of a movement": fault(
        "SELECT 'evt_move_2'", "UPDATE pg_webhook_inbox SET reason = NULL WHERE event_id = %(it)s", red=("verdicts",)
    ),
    "an event that has not waited": fault(
        "SELECT 'evt_w_wait'",
        "UPDATE pg_webhook_inbox SET processed_at = now(), parked_reason = NULL, verdict = 'advanced'"
        " WHERE event_id = %(it)s",
        red=("verdicts",),
    ),
}

_PRUNE_INBOX = (
    "DELETE FROM pg_webhook_inbox i USING sink_offsets s WHERE s.topic = 'tallyhook.state-changes'"
    " AND s.partition = i.partition AND i.processed_at IS NOT NULL AND i.arrival_seq < s.next_arrival_seq / 2"
)
_PRUNE_OUTBOX = (
    "DELETE FROM pg_outbox o USING sink_offsets s WHERE s.topic = 'tallyhook.state-changes'"
    " AND s.partition = o.partition AND o.seq < s.next_outbox_seq / 2"
)
PRUNING = (_PRUNE_INBOX, "DELETE FROM redeliveries", _PRUNE_OUTBOX)
"""The older half of what may be pruned once it is old enough."""
