"""Deposits: what an event of a deposit order means for its row, its user's balance and the world outside.

Source: the gateway's page on event order, section "Code - deposit side".
"""

from dataclasses import replace

import msgspec

from schemas.events import DepositEvent, DepositObject, Overpayment
from sinks.domain.decision import Credit, DepositDecision, DepositState, EntryDraft, FlagDraft, Refusal
from sinks.domain.effects import entry_key, hold_goods, release_goods, status_effect
from sinks.domain.instants import instant
from sinks.domain.money import MONEY_STATUSES, read_money
from sinks.domain.overpayment import read_flag
from sinks.domain.shape import parser
from sinks.domain.shown import shown

parse = parser(DepositEvent)
"""The typed event of bytes that have passed `read_text`, or why they are none."""


def check(event: DepositEvent) -> Refusal | None:
    """Whether the event may be kept at all: every event must pass, also a late one and one that will be parked."""
    deposit = event.data.object
    if deposit.status in MONEY_STATUSES:
        money = read_money(deposit)
        if isinstance(money, Refusal):
            return money
    until = deposit.late_slip_accepted_until
    if until is not None and instant(until) is None:
        return Refusal("body_date", f"data.object.late_slip_accepted_until is {shown(until)}")
    clearing = deposit.clearing_available_at
    if clearing is not None and instant(clearing) is None:
        return Refusal("body_date", f"data.object.clearing_available_at is {shown(clearing)}")
    flag = read_flag(event)
    return flag if isinstance(flag, Refusal) else None


def flag_of(event: DepositEvent) -> Overpayment | None:
    """The overpayment flag of an event that has passed `check`; None when it carries none."""
    draft = read_flag(event)
    return draft.flag if isinstance(draft, FlagDraft) else None


def json_or_none(value: msgspec.Raw) -> bytes | None:
    """JSON as sent, for a jsonb column; None (SQL NULL, never JSON null) where it was absent or null."""
    raw = bytes(value)
    return None if raw == b"null" else raw


def decide(state: DepositState, event: DepositEvent) -> DepositDecision | Refusal:
    """What the event does to its deposit, or why it may do nothing at all.

    Only a version above the state's moves anything; the overpayment flag alone is kept whatever the version. The event
    is checked here too, so that no road to money goes round `check`.
    """
    refusal = check(event)
    if refusal is not None:
        return refusal
    deposit, flag = event.data.object, read_flag(event)
    if isinstance(flag, Refusal):
        return flag
    if state.version is not None and deposit.version <= state.version:
        return DepositDecision(state, "late", "older_version", flag=flag)
    advanced = replace(state, version=deposit.version, snapshot=event)
    if deposit.status == "settled":
        return _settle(advanced, deposit, flag)
    if deposit.status == "reversed":
        return _reverse(advanced, deposit, flag)
    effect = status_effect(event, state.correlation.our_order_id)
    return DepositDecision(advanced, "advanced", effects=(effect,), flag=flag)


def _settle(state: DepositState, deposit: DepositObject, flag: FlagDraft | None) -> DepositDecision | Refusal:
    """Credits the user with what was received and releases the goods, once in the deposit's life."""
    # A deposit that was taken back had been credited before, also where the entry is not at hand.
    if state.credit is not None or state.reversed:
        return DepositDecision(state, "advanced", "already_credited", flag=flag)
    money = read_money(deposit)
    if isinstance(money, Refusal):
        return money
    credit = Credit(state.correlation.our_user_id, money.received)
    return DepositDecision(
        replace(state, credit=credit),
        "advanced",
        effects=(release_goods(deposit, state.correlation.our_order_id, money),),
        entries=(EntryDraft(entry_key(deposit.id, "credit"), credit.user_id, credit.amount_minor),),
        flag=flag,
    )


def _reverse(state: DepositState, deposit: DepositObject, flag: FlagDraft | None) -> DepositDecision:
    """Takes back exactly what was credited, from whom it was credited to, at most once."""
    if state.reversed:
        return DepositDecision(state, "advanced", "already_reversed", flag=flag)
    credit = state.credit
    if credit is None:
        return DepositDecision(state, "advanced", "never_credited", flag=flag)
    return DepositDecision(
        replace(state, reversed=True),
        "advanced",
        effects=(hold_goods(deposit, state.correlation.our_order_id),),
        entries=(EntryDraft(entry_key(deposit.id, "debit"), credit.user_id, -credit.amount_minor),),
        flag=flag,
        reversal_differs=credit != Credit(state.correlation.our_user_id, deposit.amount_received_minor or 0),
    )
