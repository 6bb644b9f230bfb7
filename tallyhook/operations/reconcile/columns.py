"""The columns of a row beside the members of the gateway's object, and whether both say the same."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from schemas.events import DepositObject, TransactionObject, WithdrawalObject
from sinks.domain.instants import instant
from sinks.domain.overpayment import same_json
from tallyhook.operations.gateway_api import ListedObject

Sort = Literal["plain", "instant", "json"]


class Unreadable(Exception):
    """The gateway's object has another shape than its events have."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column that the gateway's object tells.

    Args:
        name: of the column and of the member.
        sort: how both are compared: as they are, as instants, as JSON values.
    """

    name: str
    sort: Sort = "plain"


@dataclass(frozen=True, slots=True)
class Told:
    """What the gateway tells of one object; version None where it has none."""

    id: str
    version: int | None
    members: Mapping[str, Any]


DEPOSIT_COLUMNS = (
    Column("status"),
    Column("is_terminal"),
    Column("late_slip_accepted_until", "instant"),
    Column("ordered_amount_minor"),
    Column("transferred_amount_minor"),
    Column("amount_received_minor"),
    Column("fee_total_minor"),
    Column("credited_amount_minor"),
    Column("fee_breakdown", "json"),
    Column("overpayment", "json"),
    Column("balance_transaction_id"),
    Column("clearing_available_at", "instant"),
)
WITHDRAWAL_COLUMNS = (
    Column("status"),
    Column("amount_total_minor"),
    Column("fee_total_minor"),
    Column("total_locked_minor"),
    Column("filled_minor"),
    Column("remaining_minor"),
    Column("refunded_minor"),
    Column("fee_recognized_minor"),
    Column("settled_splits"),
    Column("max_splits"),
    Column("our_ref"),
)
TRANSACTION_COLUMNS = (
    Column("type"),
    Column("direction"),
    Column("amount_minor"),
    Column("bucket_from"),
    Column("bucket_to"),
    Column("source_id"),
    Column("created_at", "instant"),
)

_deposit = msgspec.json.Decoder(DepositObject).decode
_withdrawal = msgspec.json.Decoder(WithdrawalObject).decode
_transaction = msgspec.json.Decoder(TransactionObject).decode


def deposit(listed: ListedObject) -> Told:
    """A deposit; its snapshot is whole, so that an absent member is NULL. Raises Unreadable."""
    found = _decoded(_deposit, listed)
    return Told(found.id, found.version, {column.name: getattr(found, column.name) for column in DEPOSIT_COLUMNS})


def withdrawal(listed: ListedObject) -> Told:
    """A withdrawal; an absent member says nothing, since rows keep what sparse events leave out. Raises Unreadable."""
    found = _decoded(_withdrawal, listed)
    members = {column.name: getattr(found, column.name, None) for column in WITHDRAWAL_COLUMNS}
    members["our_ref"] = _our_ref(found)
    return Told(found.id, found.version, {name: value for name, value in members.items() if value is not None})


def transaction(listed: ListedObject) -> Told:
    """A balance transaction. Raises Unreadable."""
    found = _decoded(_transaction, listed)
    members = {column.name: getattr(found, column.name, None) for column in TRANSACTION_COLUMNS}
    members["source_id"] = None if found.source is None else found.source.id
    return Told(found.id, None, members)


def unlike(columns: Sequence[Column], row: Mapping[str, Any], told: Told) -> list[tuple[str, Any, Any]]:
    """Members that differ: name, the value here and the value there, as JSON shows them."""
    found = []
    for column in columns:
        if column.name not in told.members:
            continue
        here, there = row[column.name], told.members[column.name]
        if not _same(column.sort, here, there):
            found.append((column.name, _shown(column.sort, here), _shown(column.sort, there)))
    return found


def _decoded(decode: Callable[[bytes], Any], listed: ListedObject) -> Any:
    try:
        return decode(listed.raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as failure:
        raise Unreadable(str(failure)) from None


def _our_ref(found: WithdrawalObject) -> str | None:
    """The merchant's own reference: merchant_reference, else metadata.ticket, else metadata.payout_id."""
    metadata = msgspec.json.decode(found.metadata)
    texts = [found.merchant_reference]
    if isinstance(metadata, dict):
        texts += [metadata.get("ticket"), metadata.get("payout_id")]
    return next((text for text in texts if isinstance(text, str) and text), None)


def _same(sort: Sort, here: Any, there: Any) -> bool:
    if sort == "json":
        return same_json(_json(here), _json(there))
    if sort == "instant" and isinstance(there, str):
        return bool(here == instant(there))
    return type(here) is type(there) and bool(here == there)


def _json(value: Any) -> bytes:
    return b"null" if value is None else value.encode() if isinstance(value, str) else bytes(value)


def _shown(sort: Sort, value: Any) -> Any:
    if sort == "json":
        return json.loads(_json(value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
