"""Rows of an old handler, read from text and checked: what is wrong with a row is told whole, by its columns."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from sinks.domain.body import read_text
from sinks.domain.decision import Refusal
from sinks.domain.instants import instant
from sinks.domain.keys import key_fault
from sinks.domain.reversals import REASON_CODES
from tallyhook.operations.cutover.columns import Column, Kind, Type

Text = Mapping[str, str | None]
"""A row as it comes, by the names of the columns here; a column that the source does not have is absent."""
Row = dict[str, Any]
"""A row that was read: text, int, bool, datetime in UTC, msgspec.Raw for JSON, None."""

TEXT_MAX = 256 * 1024
BIGINT_MIN, BIGINT_MAX = -(2**63), 2**63 - 1
SMALLINT_MIN, SMALLINT_MAX = -(2**15), 2**15 - 1
BOOLEANS = {"true": True, "t": True, "1": True, "yes": True, "false": False, "f": False, "0": False, "no": False}
AMOUNTS = (
    *("ordered_amount_minor", "transferred_amount_minor", "amount_received_minor", "fee_total_minor"),
    "credited_amount_minor",
)


class Unreadable(Exception):
    """A row that cannot be taken over; each fault in words."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def read_row(kind: Kind, given: Text) -> Row:
    """The row with its values typed; raises Unreadable with every fault of it."""
    row: Row = {}
    faults: list[str] = []
    for column in kind.columns:
        if column.name not in given:
            if column.required:
                faults.append(f"{column.name} is missing")
            continue
        text = given[column.name]
        if text is None or (text == "" and (column.type != "text" or column.empty_is_none)):
            if column.required:
                faults.append(f"{column.name} is empty")
            elif column.never_empty:
                faults.append(f"{column.name} is empty: {column.never_empty}")
            elif not column.derived:
                row[column.name] = None
            continue
        try:
            row[column.name] = _value(column, text)
        except ValueError as failure:
            faults.append(str(failure))
    if not faults:
        faults = _RULES.get(kind.name, _no_rules)(row)
    if faults:
        raise Unreadable(faults)
    return row


def _value(column: Column, text: str) -> Any:
    fault = key_fault(column.name, text) if column.type == "key" else None
    if fault is None and "\0" in text:
        fault = f"{column.name} holds a NUL"
    if fault is None and len(text) > TEXT_MAX:
        fault = f"{column.name} is longer than {TEXT_MAX} characters"
    if fault is not None:
        raise ValueError(fault)
    return _READERS[column.type](column.name, text)


def _text(_name: str, text: str) -> str:
    return text


def _integer(low: int, high: int) -> Callable[[str, str], int]:
    def read(name: str, text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19 and low <= int(text) <= high):
            raise ValueError(f"{name} is {text[:60]!r}, no whole number of {low} to {high}")
        return int(text)

    return read


def _boolean(name: str, text: str) -> bool:
    found = BOOLEANS.get(text.lower())
    if found is None:
        raise ValueError(f"{name} is {text[:60]!r}, neither true nor false")
    return found


def _instant(name: str, text: str) -> datetime:
    found = instant(text)
    if found is None:
        raise ValueError(f"{name} is {text[:60]!r}, no date-time with its time zone (2026-03-01T10:00:00Z)")
    return found


def _json(name: str, text: str) -> msgspec.Raw | None:
    if text.strip() == "null":
        return None
    # The reader of events takes objects only, and knows everything that PostgreSQL refuses.
    found = read_text(b'{"value":' + text.encode() + b"}")
    if isinstance(found, Refusal):
        raise ValueError(f"{name} is no JSON that can be kept: {found.detail}")  # noqa: TRY004  the text is at fault
    return msgspec.Raw(text.encode())


_READERS: Mapping[Type, Callable[[str, str], Any]] = {
    "key": _text,
    "text": _text,
    "bigint": _integer(BIGINT_MIN, BIGINT_MAX),
    "whole": _integer(0, BIGINT_MAX),
    "above zero": _integer(1, BIGINT_MAX),
    "smallint": _integer(SMALLINT_MIN, SMALLINT_MAX),
    "boolean": _boolean,
    "instant": _instant,
    "json": _json,
}


def _no_rules(_row: Row) -> list[str]:
    return []


def _deposit_faults(row: Row) -> list[str]:
    status, credited = row["status"], row.get("credited_user_at")
    faults = []
    if status in ("settled", "reversed"):
        faults += _money_faults(row)
    if status == "settled" and credited is None:
        faults.append(
            "it is settled and credited_user_at is empty: let the old handler credit it first, or leave it out so that"
            " its events are applied here"
        )
    if credited is not None and credited_minor(row) is None:
        faults.append("it was credited and no amount is known: give credited_to_user_minor")
    if row.get("reversed_at") is not None and credited is None:
        faults.append("reversed_at is set and credited_user_at is empty: what was never credited cannot be taken back")
    return faults


def credited_minor(row: Row) -> int | None:
    """What the old handler credited the user with (satang), where it says so or received an amount above zero."""
    given: int | None = row.get("credited_to_user_minor")
    if given is not None:
        return given
    received: int | None = row.get("amount_received_minor")
    return received if received is not None and received > 0 else None


def _money_faults(row: Row) -> list[str]:
    lacking = [name for name in AMOUNTS if row.get(name) is None]
    if lacking:
        return [f"{', '.join(lacking)} must be known of a deposit that is {row['status']}"]
    ordered, transferred, received, fee, credited = (row[name] for name in AMOUNTS)
    if min(ordered, transferred, received) <= 0 or received != min(transferred, ordered):
        return [f"received {received} must be the lesser of transferred {transferred} and ordered {ordered}, above 0"]
    if not 0 <= fee <= received or received - fee != credited:
        return [f"credited {credited} must be received {received} less fee {fee}"]
    return []


def _flag_faults(row: Row) -> list[str]:
    faults = []
    for name, allowed in (
        ("cause", ("same_transfer_excess", "additional_transfer")),
        ("status_snapshot", ("open",)),
        ("action_required_snapshot", ("contact_support",)),
    ):
        if row[name] not in allowed:
            faults.append(f"{name} is {row[name][:60]!r}, not {' or '.join(allowed)}")
    if row["raw_flag"] is None:
        faults.append("raw_flag is null")
    return faults


def _reversal_faults(row: Row) -> list[str]:
    faults = []
    if row["reason_code"] not in REASON_CODES:
        faults.append(f"reason_code is {row['reason_code'][:60]!r}, not one of {', '.join(REASON_CODES)}")
    if row["reverses_balance_transaction_id"] == row["reversal_balance_transaction_id"]:
        faults.append("it names one balance transaction as reversed and as reversing")
    return faults


_RULES: Mapping[str, Callable[[Row], list[str]]] = {
    "deposit": _deposit_faults,
    "overpayment_flag": _flag_faults,
    "reversal": _reversal_faults,
}


def read_staged(kind: Kind, content: Mapping[str, Any]) -> Row:
    """The row again of what was kept aside as JSON."""
    row = dict(content)
    for column in kind.columns:
        value = row.get(column.name)
        if column.type == "instant" and isinstance(value, str):
            row[column.name] = instant(value)
    return row
