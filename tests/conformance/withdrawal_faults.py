"""The ways in which a withdrawal's or a balance transaction's event can be unfit: each fault breaks one rule only."""

from typing import Any

from tests.conformance.bodies import Fault, Json, setting

WITHOUT = object()


def _beside(noun: str, name: str, value: object) -> Fault:
    """A member of data.fill or data.reversal; nothing happens where the event has none."""

    def spoil(event: Json) -> None:
        part = event["data"].get(noun)
        if not isinstance(part, dict):
            return
        if value is WITHOUT:
            part.pop(name, None)
        else:
            part[name] = value

    return Fault(f"{noun}.{name}={'absent' if value is WITHOUT else repr(value)}", spoil)


def _data(name: str, value: object) -> Fault:
    def spoil(event: Json) -> None:
        event["data"][name] = value

    return Fault(f"data.{name}={value!r}", spoil)


def _reversed_as(transaction: Any) -> Fault:
    """The fill and its reversal agree on a transaction that is none."""

    def spoil(event: Json) -> None:
        for noun, name in (("fill", "balance_transaction_id"), ("reversal", "reverses_balance_transaction_id")):
            if isinstance(event["data"].get(noun), dict):
                event["data"][noun][name] = transaction

    return Fault(f"reversed transaction={transaction!r}", spoil)


def _reverses_itself(event: Json) -> None:
    reversal = event["data"].get("reversal")
    if isinstance(reversal, dict):
        reversal["balance_transaction_id"] = reversal.get("reverses_balance_transaction_id")


def _created_at(text: str) -> Fault:
    def spoil(event: Json) -> None:
        event["created_at"] = text

    return Fault(f"created_at={text!r}", spoil)


OF_WITHDRAWALS = (
    setting("amount_total_minor", 2**63),
    setting("fee_total_minor", -(2**63) - 1),
    setting("total_locked_minor", "102675"),
    setting("filled_minor", 7.5),
    setting("remaining_minor", 5.0),
    setting("refunded_minor", True),
    setting("fee_recognized_minor", [802]),
    setting("settled_splits", 32_768),
    setting("settled_splits", "1"),
    setting("max_splits", -32_769),
    setting("max_splits", False),
    setting("merchant_reference", 7),
    setting("merchant_reference", {"ticket": "t-1"}),
)
"""On any event of an order."""
OF_FILLS = (
    _data("fill", None),
    _data("fill", "leg_1"),
    _data("fill", []),
    _beside("fill", "leg_ref", WITHOUT),
    _beside("fill", "leg_ref", ""),
    _beside("fill", "leg_ref", 7),
    _beside("fill", "leg_ref", "ขา" * 86),
    _beside("fill", "amount_minor", None),
    _beside("fill", "amount_minor", WITHOUT),
    _beside("fill", "amount_minor", 2**63),
    _beside("fill", "amount_minor", "30000"),
    _beside("fill", "amount_minor", True),
    _beside("fill", "balance_transaction_id", 7),
)
"""They break a fill and, save for a member that one of the two does not look at, a reversal too."""
OF_FILLED = (
    *OF_FILLS,
    _beside("fill", "sequence", 32_768),
    _beside("fill", "sequence", 1.5),
    _beside("fill", "fee_recognized_minor", "802"),
    _beside("fill", "fee_recognized_minor", -(2**63) - 1),
    _beside("fill", "settled_at", "2026-02-30T00:00:00Z"),
    _beside("fill", "settled_at", "2026-03-01T03:33:10"),
    _beside("fill", "settled_at", 7),
    _beside("fill", "auto_confirm_at", "soon"),
    _beside("fill", "auto_confirm_at", ""),
)
OF_REVERSED = (
    *OF_FILLS,
    _data("reversal", None),
    _data("reversal", ["BANK_RECALL"]),
    _data("replacement_withdrawal_id", 7),
    _beside("fill", "balance_transaction_id", None),
    _beside("fill", "balance_transaction_id", "btxn_of_nobody"),
    _beside("reversal", "reason_code", "A_WHIM"),
    _beside("reversal", "reason_code", WITHOUT),
    _beside("reversal", "reason_code", ["BANK_RECALL"]),
    _beside("reversal", "balance_transaction_id", ""),
    _beside("reversal", "balance_transaction_id", None),
    _beside("reversal", "balance_transaction_id", 7),
    _beside("reversal", "balance_transaction_id", "b" * 513),
    _beside("reversal", "reverses_balance_transaction_id", WITHOUT),
    _reversed_as(""),
    _reversed_as(None),
    _reversed_as(7),
    _reversed_as("b" * 513),
    Fault("a transaction that reverses itself", _reverses_itself),
    _created_at("2026-02-30T00:00:00Z"),
    _created_at("2026-03-01T03:33:10"),
    _created_at(""),
)
OF_TRANSACTIONS = (
    setting("type", None),
    setting("type", 7),
    setting("direction", ["debit"]),
    setting("amount_minor", None),
    setting("amount_minor", "5"),
    setting("amount_minor", 5.0),
    setting("amount_minor", 2**63),
    setting("bucket_from", 7),
    setting("bucket_to", {}),
    setting("source", "wdr_1"),
    setting("source", []),
    setting("source", {"id": 7}),
    setting("created_at", None),
    setting("created_at", 7),
    setting("created_at", "2026-02-30T00:00:00Z"),
    setting("created_at", "2026-03-01T03:33:10"),
    setting("created_at", ""),
)
