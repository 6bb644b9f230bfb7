"""What the sink reads of an event's bytes, by kind: the typed event, and the facts to look up for its decision."""

import msgspec

from schemas.events import DepositEvent
from schemas.headers import EventHeaders
from sinks.domain.body import read_text
from sinks.domain.decide import AnyHandler, DepositHandler, TransactionHandler, WithdrawalHandler
from sinks.domain.decision import FlagDraft, Refusal
from sinks.domain.overpayment import read_flag
from sinks.domain.withdrawal_state import FactKeys, Transaction, WithdrawalReading


class DepositContent(msgspec.Struct, frozen=True):
    """An event of a deposit, and the overpayment flag that it carries."""

    handler: DepositHandler
    event: DepositEvent
    flag: FlagDraft | None


class WithdrawalContent(msgspec.Struct, frozen=True):
    """An event of a withdrawal, and the facts that must be looked up to decide it."""

    handler: WithdrawalHandler
    reading: WithdrawalReading
    keys: FactKeys | None

    @property
    def can_build(self) -> bool:
        """Whether the event suffices for the withdrawal's first row."""
        return self.handler.can_build(self.reading)


class TransactionContent(msgspec.Struct, frozen=True):
    """A balance transaction."""

    handler: TransactionHandler
    transaction: Transaction


Content = DepositContent | WithdrawalContent | TransactionContent


def read_content(raw: bytes, headers: EventHeaders, handler: AnyHandler | None) -> Content | Refusal | None:
    """Reads and checks the bytes; None for a kind that has no rules.

    A refusal for `record_headers` means that the headers name another event, object or version than the body.
    """
    text = read_text(raw)
    if isinstance(text, Refusal):
        return text
    if handler is None:
        return _names_differ(raw, headers)
    if isinstance(handler, WithdrawalHandler):
        return _withdrawal(raw, headers, handler)
    if isinstance(handler, TransactionHandler):
        return _transaction(raw, headers, handler)
    return _deposit(raw, headers, handler)


def _deposit(raw: bytes, headers: EventHeaders, handler: DepositHandler) -> DepositContent | Refusal:
    event = handler.parse(raw)
    if isinstance(event, Refusal):
        return event
    deposit = event.data.object
    if (
        event.id != headers.id
        or deposit.id != headers.subject
        or deposit.object != headers.object_kind
        or deposit.version != headers.version
    ):
        return _differs()
    refusal = handler.check(event)
    if refusal is not None:
        return refusal
    flag = read_flag(event)
    return flag if isinstance(flag, Refusal) else DepositContent(handler, event, flag)


def _withdrawal(raw: bytes, headers: EventHeaders, handler: WithdrawalHandler) -> WithdrawalContent | Refusal:
    event = handler.parse(raw)
    if isinstance(event, Refusal):
        return event
    order = event.data.object
    if (
        event.id != headers.id
        or order.id != headers.subject
        or order.object != headers.object_kind
        or order.version != headers.version
    ):
        return _differs()
    reading = handler.read(event)
    if isinstance(reading, Refusal):
        return reading
    return WithdrawalContent(handler, reading, handler.keys_of(reading))


def _transaction(raw: bytes, headers: EventHeaders, handler: TransactionHandler) -> TransactionContent | Refusal:
    event = handler.parse(raw)
    if isinstance(event, Refusal):
        return event
    moved = event.data.object
    # A balance transaction has no version; one that the headers name means nothing, as with kinds without rules.
    if (event.id, moved.id, moved.object) != (headers.id, headers.subject, headers.object_kind):
        return _differs()
    transaction = handler.read(event)
    return transaction if isinstance(transaction, Refusal) else TransactionContent(handler, transaction)


class _Object(msgspec.Struct, frozen=True, gc=False):
    id: str
    object: str


class _Data(msgspec.Struct, frozen=True, gc=False):
    object: _Object


class _Names(msgspec.Struct, frozen=True, gc=False):
    """The names that every event carries, whatever its kind."""

    id: str
    data: _Data


_names_of = msgspec.json.Decoder(_Names).decode


def _names_differ(raw: bytes, headers: EventHeaders) -> Refusal | None:
    try:
        names = _names_of(raw)
    except msgspec.ValidationError as failure:
        return Refusal("body_shape", str(failure))
    if (names.id, names.data.object.id, names.data.object.object) != (headers.id, headers.subject, headers.object_kind):
        return _differs()
    return None


def _differs() -> Refusal:
    return Refusal("record_headers", "the headers name another event, object or version than the body")
