"""Which rules judge which kind of object."""

import pytest

from schemas.events import BALANCE_TRANSACTION_KIND, DEPOSIT_KIND, WITHDRAWAL_KIND, TransactionEvent
from sinks.domain import decide
from sinks.domain.decide import handler_for, verdict_without_rules
from sinks.domain.decision import DepositDecision
from sinks.domain.withdrawal_state import Transaction, TransactionDecision, WithdrawalDecision, WithdrawalState
from tests.unit.domain import withdrawal_samples
from tests.unit.domain.samples import body, event, fresh
from tests.unit.domain.test_transactions import KEPT
from tests.unit.domain.test_transactions import body as transaction_body


def test_each_kind_has_its_own() -> None:
    """The kind alone chooses."""
    kinds = (DEPOSIT_KIND, WITHDRAWAL_KIND, BALANCE_TRANSACTION_KIND)
    assert [handler_for(kind) for kind in kinds] == [decide.DEPOSITS, decide.WITHDRAWALS, decide.TRANSACTIONS]


def test_deposits_have_rules() -> None:
    """The handler reads, checks and decides."""
    handler = decide.DEPOSITS
    assert handler.parse(body(3, "open")) == event(3, "open")
    assert handler.check(event(3, "open")) is None
    assert isinstance(handler.decide(fresh(), event(3, "open")), DepositDecision)


def test_withdrawals_have_rules() -> None:
    """The handler reads, names the facts it needs, and decides."""
    handler = decide.WITHDRAWALS
    given = withdrawal_samples.filled(3)
    parsed = handler.parse(withdrawal_samples.body(3, "open"))
    assert parsed == withdrawal_samples.event(withdrawal_samples.body(3, "open"))
    assert handler.read(given.event) == given
    assert handler.keys_of(given) is not None
    assert handler.can_build(given)
    state = WithdrawalState(withdrawal_samples.WITHDRAWAL_ID)
    assert isinstance(handler.decide(state, given, withdrawal_samples.Facts()), WithdrawalDecision)


def test_transactions_have_rules() -> None:
    """The handler reads and decides."""
    handler = decide.TRANSACTIONS
    parsed = handler.parse(transaction_body())
    assert isinstance(parsed, TransactionEvent)
    found = handler.read(parsed)
    assert isinstance(found, Transaction)
    assert handler.decide(None, found) == TransactionDecision(KEPT)


@pytest.mark.parametrize("kind", ["refund_order", "withdrawal", "balance_transaction ", "DEPOSIT_ORDER", ""])
def test_other_kinds_have_none(kind: str) -> None:
    """They are recorded and move nothing."""
    assert handler_for(kind) is None


def test_the_verdict_without_rules_follows_the_version() -> None:
    """An object without versions is immutable; version 0 is a version."""
    assert verdict_without_rules(None) == ("immutable", "no_handler")
    assert verdict_without_rules(0) == ("advanced", "no_handler")
