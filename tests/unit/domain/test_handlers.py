"""Which rules judge which kind of object."""

import pytest

from schemas.events import BALANCE_TRANSACTION_KIND, DEPOSIT_KIND, WITHDRAWAL_KIND
from sinks.domain.decide import handler_for, verdict_without_rules
from sinks.domain.decision import DepositDecision
from tests.unit.domain.samples import body, event, fresh


def test_deposits_have_rules() -> None:
    """The handler reads, checks and decides."""
    handler = handler_for(DEPOSIT_KIND)
    assert handler is not None
    assert handler.parse(body(3, "open")) == event(3, "open")
    assert handler.check(event(3, "open")) is None
    assert isinstance(handler.decide(fresh(), event(3, "open")), DepositDecision)


@pytest.mark.parametrize(
    "kind", [WITHDRAWAL_KIND, BALANCE_TRANSACTION_KIND, "refund_order", "deposit", "DEPOSIT_ORDER", ""]
)
def test_other_kinds_have_none(kind: str) -> None:
    """They are recorded and move nothing."""
    assert handler_for(kind) is None


def test_the_verdict_without_rules_follows_the_version() -> None:
    """An object without versions is immutable; version 0 is a version."""
    assert verdict_without_rules(None) == ("immutable", "no_handler")
    assert verdict_without_rules(0) == ("advanced", "no_handler")
