"""Reading an event's stored bytes by the reference handler's rules, as plainly as possible."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

Json = dict[str, Any]

DEPOSIT = "deposit_order"
WITHDRAWAL = "withdrawal_order"
TRANSACTION = "balance_transaction"
AMOUNTS = (
    "ordered_amount_minor",
    "transferred_amount_minor",
    "amount_received_minor",
    "fee_total_minor",
    "credited_amount_minor",
)
_DATE_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)


class Unreadable(ValueError):
    """The bytes are no event that could have been applied; the message names the field."""


@dataclass(frozen=True, slots=True)
class InboxEvent:
    """One row of the inbox.

    Args:
        raw: the signed bytes as text.
        kind: data.object.object, and `version` its version where it has one.
        verdict, reason: what the sink noted about it.
        processed_at: None while it is parked.
    """

    event_id: str
    raw: str
    partition: int
    arrival_seq: int
    verdict: str
    reason: str | None
    processed_at: datetime | None
    kind: str
    version: int | None


def read(event: InboxEvent, object_id: str) -> Json:
    """An event whose `data.object` is an object; numbers with a point or an exponent are decimals.

    Raises Unreadable, also where the bytes are another event's than their row says.
    """
    try:
        body = json.loads(event.raw, parse_float=Decimal)
        o = body["data"]["object"]
        named = (body["id"], o["id"], o["object"])
    except (ValueError, RecursionError) as failure:
        raise Unreadable(f"it is no JSON: {failure}") from failure
    except (KeyError, TypeError) as failure:
        raise Unreadable("it lacks id, data.object.id or data.object.object") from failure
    if named != (event.event_id, object_id, event.kind):
        raise Unreadable(f"its row says {(event.event_id, object_id, event.kind)}, its bytes {named}")
    event_body: Json = body
    return event_body


def check_deposit(o: Json) -> None:
    """Raises Unreadable unless version, status and amounts have their types and hold the money rule."""
    if whole(o, "version") is None or o["version"] < 0:
        raise Unreadable("data.object.version is missing or below 0")
    if not isinstance(o.get("status"), str):
        raise Unreadable("data.object.status is no text")
    amounts = [whole(o, name) for name in AMOUNTS]
    flag = o.get("overpayment")
    if flag is not None and not (isinstance(flag, dict) and isinstance(flag.get("claim_id"), str)):
        raise Unreadable("data.object.overpayment has no claim_id")
    if o["status"] not in ("settled", "reversed"):
        return
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(AMOUNTS):
        raise Unreadable(f"it is {o['status']} and lacks an amount")
    ordered, transferred, received, fee, credited = known
    if not (
        min(ordered, transferred, received) > 0
        and received == min(transferred, ordered)
        and 0 <= fee <= received
        and received - fee == credited
    ):
        raise Unreadable(f"its amounts break the money rule: {', '.join(map(str, known))}")


def whole(o: Mapping[str, Any], name: str) -> int | None:
    """A member that is a whole number, None where it is absent or null; raises Unreadable."""
    value = o.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise Unreadable(f"data.object.{name} is no whole number")


def moment(text: object) -> datetime | None:
    """The instant of an RFC 3339 date-time as timestamptz keeps it; None for null and for what is none.

    Fractions are rounded to microseconds, half to even; second 60 is the first of the next minute.
    """
    found = _DATE_TIME.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    day, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        at = datetime.fromisoformat(f"{day}T{minute}:00").replace(tzinfo=UTC)
    except ValueError:
        return None
    at += timedelta(seconds=int(second), microseconds=round(float(f"0.{fraction or 0}") * 1_000_000))
    if sign is None:
        return at
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return at - offset if sign == "+" else at + offset


def same_json(one: object, other: object) -> bool:
    """Whether two values are one as jsonb compares them: numbers by value, members in any order."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    # True equals 1 in Python, and is another thing in JSON.
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other


def parse_json(text: str | bytes | None) -> object:
    """A JSON text as `read` reads numbers; None for SQL NULL. Raises ValueError."""
    value: object = None if text is None else json.loads(text, parse_float=Decimal)
    return value
