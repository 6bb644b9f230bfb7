"""Rows as the sink leaves them, for tests of the timeline: the order of 300 + 400 + 300 baht and its neighbours."""

import json
from collections.abc import Mapping
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from tests.integration.operations.operated import Operated

ORDER = "wdr_01K3PBQ7X4M2TN9YR0HDVKW6SC"
TICKET = "WD-20260821-0007"
CHUNKS = (
    ("leg_4TQ2XM9K", 1, 30_000, 802, "2026-08-21T03:19:47.903Z"),
    ("leg_7HB3ND5R", 2, 40_000, 1_070, "2026-08-21T03:33:12.664Z"),
    ("leg_2WC8FJ6P", 3, 30_000, 803, "2026-08-21T03:52:40.019Z"),
)


def insert(installation: Operated, table: str, **values: Any) -> None:
    """One row of a table of the installation's schema."""
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(sql.Placeholder() * len(values)),
    )
    installation.connection.execute(statement, list(values.values()))


def insert_event(
    installation: Operated,
    event_id: str,
    event_type: str,
    object_id: str,
    arrival: int,
    *,
    version: int | None = None,
    verdict: str = "advanced",
    reason: str | None = None,
    parked: str | None = None,
    kind: str = "withdrawal_order",
    entity: Mapping[str, Any] | None = None,
    **data: Any,
) -> None:
    """An event of the inbox; its place in `events` is ten times its arrival."""
    body = {"id": event_id, "type": event_type, "data": {"object": {"id": object_id} | dict(entity or {})} | data}
    insert(
        installation,
        "pg_webhook_inbox",
        event_id=event_id,
        event_type=event_type,
        event_raw=json.dumps(body, ensure_ascii=False),
        received_at=f"2026-08-21T04:{arrival:02d}:00Z",
        processed_at=None if parked else f"2026-08-21T04:{arrival:02d}:01Z",
        parked_reason=parked,
        object_id=object_id,
        object_kind=kind,
        version=version,
        merchant_id="mer_1",
        sequence=91_000 + arrival,
        partition=2,
        arrival_seq=arrival,
        source_partition=2,
        source_offset=arrival * 10,
        verdict="parked" if parked else verdict,
        reason=reason,
        key_id="k1",
        origin="webhook",
    )


def insert_withdrawal(
    installation: Operated, object_id: str, version: int, status: str, filled: int, remaining: int, **members: Any
) -> None:
    """The row of an order of 1,000 baht."""
    row = {"amount_total_minor": 100_000, "fee_total_minor": 2_675, "total_locked_minor": 102_675, "our_ref": TICKET}
    insert(
        installation,
        "pg_withdrawals",
        pg_withdrawal_id=object_id,
        pg_version=version,
        status=status,
        filled_minor=filled,
        remaining_minor=remaining,
        **row | members,
    )


def insert_fill(
    installation: Operated, object_id: str, leg_ref: str, sequence: int, amount: int, fee: int, settled_at: str
) -> None:
    """A chunk."""
    insert(
        installation,
        "pg_withdrawal_fills",
        leg_ref=leg_ref,
        pg_withdrawal_id=object_id,
        sequence=sequence,
        amount_minor=amount,
        fee_recognized_minor=fee,
        settled_at=settled_at,
        balance_transaction_id=f"btxn_{leg_ref}",
    )


def insert_effect(
    installation: Operated, object_id: str, seq: int, effect: str, dedupe_key: str, cause: str, version: int
) -> None:
    """An effect in the outbox, partition 2."""
    insert(
        installation,
        "pg_outbox",
        partition=2,
        seq=seq,
        aggregatetype="withdrawal",
        aggregateid=object_id,
        type=effect,
        topic=effect,
        payload=Jsonb({"ticket": TICKET}),
        dedupe_key=dedupe_key,
        causation_id=cause,
        version=version,
        received_at="2026-08-21T04:00:00Z",
    )


def insert_the_order_half_way(installation: Operated) -> None:
    """Two chunks have arrived, the second one first; a payer is reserved for the third."""
    insert_withdrawal(installation, ORDER, 6, "partially_filled", 70_000, 0, settled_splits=2)
    for leg_ref, sequence, amount, fee, settled_at in CHUNKS[:2]:
        insert_fill(installation, ORDER, leg_ref, sequence, amount, fee, settled_at)
    for event_id, arrival, version, verdict, reason, chunk, filled in (
        ("evt_5", 1, 5, "advanced", None, CHUNKS[1], 70_000),
        ("evt_3", 2, 3, "late", "late_fact", CHUNKS[0], 30_000),
    ):
        insert_event(
            installation,
            event_id,
            "withdrawal.filled",
            ORDER,
            arrival,
            version=version,
            verdict=verdict,
            reason=reason,
            entity={"filled_minor": filled},
            fill={"leg_ref": chunk[0], "amount_minor": chunk[2]},
        )
    insert_event(installation, "evt_6", "withdrawal.matched", ORDER, 4, version=6, entity={"reserved_minor": 30_000})
    insert(
        installation,
        "redeliveries",
        event_id="evt_5",
        source_partition=2,
        source_offset=77,
        received_at="2026-08-21T05:00:00Z",
        verdict="redelivered",
    )
    insert(installation, "relay_cursors", partition=2, sent_seq=0)
    insert_effect(installation, ORDER, 0, "show_progress", "evt_5:show_progress", "evt_5", 5)
    insert_effect(installation, ORDER, 1, "show_progress", "evt_6:show_progress", "evt_6", 6)
    insert_effect(installation, "another", 2, "show_progress", "evt_other:show_progress", "evt_other", 1)


def insert_deposit(installation: Operated, deposit: str, order: str, user: str, status: str, **members: Any) -> None:
    """The row of a deposit and its correlation."""
    insert_correlation(installation, deposit, order, user)
    insert(
        installation,
        "pg_deposits",
        pg_deposit_id=deposit,
        pg_version=3,
        status=status,
        our_order_id=order,
        our_user_id=user,
        **members,
    )


def insert_correlation(installation: Operated, deposit: str, order: str, user: str) -> None:
    """What the merchant's service knows of a deposit."""
    insert(
        installation,
        "pg_deposit_correlations",
        pg_deposit_id=deposit,
        merchant_reference=f"ref_{deposit}",
        our_order_id=order,
        our_user_id=user,
    )
