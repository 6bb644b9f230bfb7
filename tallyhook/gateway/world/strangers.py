"""What must pass through without a trace in the orders' tables: objects of unknown kinds, and test traffic."""

from tallyhook.gateway.world.deposit_order import DepositOrder
from tallyhook.gateway.world.story import Json, Story, iso
from tallyhook.gateway.world.wallet import move
from tallyhook.gateway.world.withdrawal_order import WithdrawalOrder
from tallyhook.gateway.world.withdrawals import THE_EXAMPLE, pay_out


def _stranger(story: Story, kind: str) -> Json:
    return {"id": story.names.stranger(), "object": kind, "created_at": iso(story.at)}


def unknown_kind(story: Story) -> None:
    """An object with versions and statuses that look like a deposit's, amounts too, but is of another kind."""
    snapshot = _stranger(story, "payment_link") | {"amount_received_minor": 5_000, "overpayment": {"not": "a flag"}}
    for version, status in enumerate(("open", "settled", "expired"), start=1):
        story.event(f"payment_link.{status}", snapshot | {"version": version, "status": status})
        story.wait(1, 600)


def unknown_kind_without_version(story: Story) -> None:
    """An object that has neither version nor status, in an event whose type looks like a deposit's."""
    story.event("deposit.settled", _stranger(story, "settlement_report") | {"rows": [], "ชื่อ": "รายงานประจำวัน"})


def test_deposit(story: Story) -> None:
    """A deposit of test mode, from open to reversed."""
    order = DepositOrder(story, 50_000)
    order.open()
    story.wait(10, 60)
    order.settle()
    order.reverse("pending")


def test_withdrawal(story: Story) -> None:
    """A withdrawal of test mode, paid out, recalled."""
    order = WithdrawalOrder(story, THE_EXAMPLE)
    order.create()
    pay_out(story, order, [60_000, 40_000])
    order.settle()
    order.reverse(order.chunks[0], "BANK_RECALL")


def test_top_up(story: Story) -> None:
    """A movement of the test wallet."""
    move(story, "top_up", 100_000, None, "available", None)


STRANGER_SCENARIOS = {
    "unknown_kind": (unknown_kind, 1),
    "unknown_kind_without_version": (unknown_kind_without_version, 1),
}
TEST_SCENARIOS = {
    "test_deposit": (test_deposit, 1),
    "test_withdrawal": (test_withdrawal, 1),
    "test_top_up": (test_top_up, 1),
}
"""Of test mode (livemode false). Name -> the life, and how often it is lived in comparison with the others."""
