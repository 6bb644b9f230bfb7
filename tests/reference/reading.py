"""What an event's bytes must fulfil before a handler may act on them, written down as plainly as possible."""

import json
import re
from datetime import datetime
from typing import Any

from tallyhook.errors import TallyhookError

Json = dict[str, Any]

BIGINT_MIN, BIGINT_MAX = -(2**63), 2**63 - 1
AMOUNTS = (
    "ordered_amount_minor",
    "transferred_amount_minor",
    "amount_received_minor",
    "fee_total_minor",
    "credited_amount_minor",
)
TEXTS = ("late_slip_accepted_until", "balance_transaction_id", "clearing_available_at", "cancel_reason_code")
DATES = ("late_slip_accepted_until", "clearing_available_at")
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
CAUSES = ("same_transfer_excess", "additional_transfer")


class Refused(TallyhookError):
    """The event itself is at fault: it is quarantined whole.

    Args:
        reason: the reason code it is quarantined with.
        detail: which field, for a person.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


def read(body: bytes) -> Json:
    """The event of a body; raises Refused where PostgreSQL could not keep it as text and jsonb."""
    try:
        event = json.loads(body.decode(), parse_constant=_refuse_constant)
    except RecursionError as failure:
        raise Refused("body_shape", "too deeply nested") from failure
    except ValueError as failure:
        raise Refused("body_not_json", str(failure)) from failure
    # Only an escape can bring in what JSON allows and PostgreSQL does not: a NUL or half of a surrogate pair.
    if b"\\u" in body:
        _check_texts(event, "")
    if not isinstance(event, dict):
        raise Refused("body_shape", "not an object")
    return event


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_texts(value: object, path: str) -> None:
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= character <= "\udfff" for character in value):
            raise Refused("body_text", f"{path} has a NUL or a lone surrogate")
    elif isinstance(value, dict):
        for key, member in value.items():
            _check_texts(key, f"{path}.{key!r} (a name)")
            _check_texts(member, f"{path}.{key}")
    elif isinstance(value, list):
        for place, member in enumerate(value):
            _check_texts(member, f"{path}[{place}]")


def check_deposit(event: Json) -> None:
    """Raises Refused unless the event's fields have the contract's types, dates, flag and money rule."""
    o = event["data"]["object"]
    for name in AMOUNTS:
        if o.get(name) is not None and not is_bigint(o[name]):
            raise Refused("body_shape", f"data.object.{name}")
    for name in TEXTS:
        if o.get(name) is not None and not isinstance(o[name], str):
            raise Refused("body_shape", f"data.object.{name}")
    if o.get("is_terminal") is not None and not isinstance(o["is_terminal"], bool):
        raise Refused("body_shape", "data.object.is_terminal")
    for name in DATES:
        if o.get(name) is not None:
            check_date(o[name], f"data.object.{name}")
    if o.get("overpayment") is not None:
        _check_flag(o["overpayment"])
    if o["status"] in ("settled", "reversed"):
        _check_money(o)


def _check_flag(flag: object) -> None:
    if not isinstance(flag, dict):
        raise Refused("overpayment_shape", "data.object.overpayment")
    for name in ("claim_id", "cause", "slip_received_at", "status", "action_required"):
        if not isinstance(flag.get(name), str):
            raise Refused("overpayment_shape", f"data.object.overpayment.{name}")
    expected = flag.get("expected_response_at")
    if not (expected is None or isinstance(expected, str)):
        raise Refused("overpayment_shape", "data.object.overpayment.expected_response_at")
    if not is_bigint(flag.get("amount_minor")) or flag["amount_minor"] <= 0:
        raise Refused("overpayment_shape", "data.object.overpayment.amount_minor")
    if flag["cause"] not in CAUSES or flag["status"] != "open" or flag["action_required"] != "contact_support":
        raise Refused("overpayment_shape", "data.object.overpayment")
    check_date(flag["slip_received_at"], "data.object.overpayment.slip_received_at")
    if expected is not None:
        check_date(expected, "data.object.overpayment.expected_response_at")


def _check_money(o: Json) -> None:
    if any(o.get(name) is None for name in AMOUNTS):
        raise Refused("money_rule", "an amount is missing")
    ordered, transferred, received, fee, credited = (o[name] for name in AMOUNTS)
    holds = (
        ordered > 0
        and transferred > 0
        and received > 0
        and received == min(transferred, ordered)
        and 0 <= fee <= received
        and received - fee == credited
    )
    if not holds:
        raise Refused("money_rule", f"{ordered=} {transferred=} {received=} {fee=} {credited=}")


def check_date(text: str, path: str, reason: str = "body_date") -> None:
    """Raises Refused unless the text is a date-time of RFC 3339, with a zone and on a day that exists."""
    try:
        if RFC_3339.fullmatch(text) is None:
            raise ValueError(text)
        datetime.fromisoformat(text.upper())
    except ValueError as failure:
        raise Refused(reason, f"{path} is {text!r}") from failure


def is_bigint(value: object) -> bool:
    """Whether it is a whole number that PostgreSQL's bigint keeps; true and false are none."""
    return isinstance(value, int) and not isinstance(value, bool) and BIGINT_MIN <= value <= BIGINT_MAX
