"""An event as bytes, and the ways in which one can be unfit: each fault breaks one rule only."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken rule.

    Args:
        spoil: changes the event before it is encoded.
        scramble: changes the bytes afterwards.
    """

    name: str
    spoil: Callable[[Json], None] | None = None
    scramble: Callable[[bytes], bytes] | None = None


def setting(name: str, value: object) -> Fault:
    """A member of data.object that has a value it must not have."""

    def spoil(event: Json) -> None:
        event["data"]["object"][name] = value

    return Fault(f"{name}={value!r}", spoil)


def _flag_with(name: str, value: object) -> Fault:
    flag = {
        "claim_id": "clm_faulty",
        "cause": "same_transfer_excess",
        "amount_minor": 1,
        "slip_received_at": "2026-03-01T03:33:10Z",
        "status": "open",
        "action_required": "contact_support",
    }
    return setting("overpayment", {**flag, name: value})


def _noted(note: str) -> Fault:
    def spoil(event: Json) -> None:
        event["data"]["object"]["metadata"] = {"note": note}

    return Fault(f"metadata.note={note!r}", spoil)


def _test_mode(event: Json) -> None:
    event["livemode"] = False


FAULTS_OF_ANY = (
    _noted("before\x00after"),
    _noted("half of a pair \ud83d"),
    _noted("the other half \ude3f"),
    Fault("livemode=false", _test_mode),
    Fault("cut short", scramble=lambda body: body[:-1]),
    Fault("a NaN", scramble=lambda body: body[:-1] + b', "extra": NaN}'),
    Fault("not UTF-8", scramble=lambda body: body[:-1] + b', "extra": "\xff"}'),
)
FAULTS_OF_DEPOSITS = (
    setting("amount_received_minor", None),
    setting("amount_received_minor", 0),
    setting("ordered_amount_minor", -100),
    setting("transferred_amount_minor", 1),
    setting("fee_total_minor", -1),
    setting("fee_total_minor", 10_000_000),
    setting("credited_amount_minor", 1),
    setting("ordered_amount_minor", "500"),
    setting("fee_total_minor", 7.5),
    setting("credited_amount_minor", True),
    setting("transferred_amount_minor", 2**63),
    setting("is_terminal", "no"),
    setting("balance_transaction_id", 7),
    setting("cancel_reason_code", ["by_user"]),
    setting("late_slip_accepted_until", "2026-02-30T00:00:00Z"),
    setting("late_slip_accepted_until", "2026-03-02T00:00:00"),
    setting("late_slip_accepted_until", ""),
    setting("clearing_available_at", "tomorrow"),
    _flag_with("cause", "a_gift"),
    _flag_with("amount_minor", 0),
    _flag_with("status", "closed"),
    _flag_with("action_required", "none"),
    _flag_with("slip_received_at", "2026-13-01T00:00:00Z"),
    _flag_with("expected_response_at", "2026-03-01 03:33"),
)


def faults(*known: Fault) -> st.SearchStrategy[Fault | None]:
    """No fault most of the time; the known ones and those of any event otherwise."""
    chosen = st.sampled_from((*FAULTS_OF_ANY, *known))
    return st.integers(0, 9).flatmap(lambda roll: chosen if roll == 9 else st.none())


def encode(event: Json, fault: Fault | None, *, escapes: bool) -> tuple[bytes, bool]:
    """The event's bytes and its livemode; with `escapes` everything beyond ASCII is written as an escape."""
    if fault is not None and fault.spoil is not None:
        fault.spoil(event)
    text = json.dumps(event, ensure_ascii=escapes, separators=None if escapes else (",", ":"))
    # A lone surrogate exists only as an escape: there are no bytes for it.
    body = LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()
    if fault is not None and fault.scramble is not None:
        body = fault.scramble(body)
    return body, event["livemode"]
