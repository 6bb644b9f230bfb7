"""The second act of `tallyhook demo`: a day of withdrawals, and by hand what must come of it.

The simulator gives the events; `SEED` gives their order of arrival, so that each object's own order is the same in
every run and every effect can be written down. Source: the gateway's guide on partial fills.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

from tallyhook.gateway.world.model import SimEvent, World
from tallyhook.gateway.world.named import WITHDRAWAL_DAY, scenario_named

SEED = 615
MERCHANT_ID = "mer_withdrawals"
"""A merchant of its own, with an endpoint and a signing key of its own, so that its sequence stands for itself."""

REPEATS = 10
"""Events that are sent once more although they were answered 200."""

OrderName = Literal["three chunks", "recalled", "half filled", "replacement"]
"""The day's withdrawals, in order of creation."""


@dataclass(frozen=True, slots=True)
class GuideEvent:
    """One of the guide's eight events of an order of 1,000 baht.

    Args:
        effect: what it leads to when everything comes in order.
    """

    version: int
    type: str
    effect: str | None


@dataclass(frozen=True, slots=True)
class DayDelivery:
    """A delivery of the order of eight events, in the order of arrival, with what must be decided.

    Args:
        effect: what it leads to in this order of arrival.
        note: why, for the reader.
    """

    version: int
    verdict: str
    reason: str | None
    effect: str | None
    note: str


class Decided(Protocol):
    """A delivery with what was, or must be, decided about it."""

    @property
    def version(self) -> int:
        """The event's."""

    @property
    def verdict(self) -> str:
        """The sink's."""

    @property
    def reason(self) -> str | None:
        """The reason code."""

    @property
    def effect(self) -> str | None:
        """The effect it led to."""


def as_decided(delivery: Decided) -> tuple[int, str, str | None, str | None]:
    """What two deliveries are compared by."""
    return delivery.version, delivery.verdict, delivery.reason, delivery.effect


@dataclass(frozen=True, slots=True)
class DayEffect:
    """An effect that must be read from its topic, once.

    Args:
        dedupe_key: `{v4}` is the id of the order's event of version 4; other names in braces as in `names_of`.
        payload: texts may have names in braces, too; amounts are satang.
    """

    order: OrderName
    effect: str
    dedupe_key: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DayPage:
    """What the timeline of an order must say: its status in both languages, and how many chunks it lists."""

    thai: str
    english: str
    chunks: int


@dataclass(frozen=True, slots=True)
class DayExpectation:
    """What must come of the day.

    Args:
        posts: how many there are; each is answered 200.
        missing: version of the three chunks' event that only the gateway's API tells of.
        deliveries: of the order of three chunks.
        effects: of all withdrawals.
    """

    posts: int
    missing: int
    deliveries: tuple[DayDelivery, ...]
    effects: tuple[DayEffect, ...]
    pages: Mapping[OrderName, DayPage]


GUIDE: tuple[GuideEvent, ...] = (
    GuideEvent(1, "withdrawal.created", "update_local_status"),
    GuideEvent(2, "withdrawal.matched", "update_local_status"),
    GuideEvent(3, "withdrawal.filled", "show_progress"),
    GuideEvent(4, "withdrawal.matched", "show_progress"),
    GuideEvent(5, "withdrawal.filled", "show_progress"),
    GuideEvent(6, "withdrawal.matched", "show_progress"),
    GuideEvent(7, "withdrawal.filled", "close_withdrawal"),
    GuideEvent(8, "withdrawal.settled", None),
)
"""In order. In any other order only `close_withdrawal` is certain; the others come for what was news on arrival."""


def _status(order: OrderName, version: int) -> DayEffect:
    key = f"{{v{version}}}:update_local_status"
    return DayEffect(order, "update_local_status", key, {"ticket": "{ticket}", "status": "open"})


def _progress(order: OrderName, version: int, filled_minor: int) -> DayEffect:
    payload = {"ticket": "{ticket}", "filled_minor": filled_minor, "amount_total_minor": 100_000}
    return DayEffect(order, "show_progress", f"{{v{version}}}:show_progress", payload)


def _close(order: OrderName) -> DayEffect:
    payload = {"withdrawal_id": "{withdrawal_id}", "ticket": "{ticket}"}
    return DayEffect(order, "close_withdrawal", "withdrawal:{withdrawal_id}:close_withdrawal", payload)


EXPECTED = DayExpectation(
    posts=62,
    missing=5,
    deliveries=(
        DayDelivery(2, "advanced", None, "update_local_status", "too sparse for a row: waits, is applied after v1"),
        DayDelivery(1, "advanced", None, "update_local_status", "makes the row"),
        DayDelivery(6, "advanced", None, "show_progress", "newer: 70,000 of 100,000 are filled"),
        DayDelivery(1, "redelivered", "seen_before", None, "sent again"),
        DayDelivery(8, "advanced", None, "close_withdrawal", "the summary, before the last chunk"),
        DayDelivery(3, "late", "late_fact", None, "older: totals stay, the chunk is kept"),
        DayDelivery(7, "late", "late_fact", None, "older: totals stay, the chunk is kept"),
        DayDelivery(4, "late", "older_version", None, "older, and a match is not money"),
        DayDelivery(5, "late", "late_fact", None, "backfilled: totals stay, the chunk is kept"),
    ),
    effects=(
        _status("three chunks", 1),
        _status("three chunks", 2),
        _progress("three chunks", 6, 70_000),
        _close("three chunks"),
        # The recall comes first of all its order's events: compensated once, and the order is never closed.
        DayEffect(
            "recalled",
            "compensate_reversed_fill",
            "withdrawal-fill:{leg_ref}:reverse:compensate_reversed_fill",
            {
                "withdrawal_id": "{withdrawal_id}",
                "leg_ref": "{leg_ref}",
                "amount_minor": 40_000,
                "reason_code": "BANK_RECALL",
                "reverses_balance_transaction_id": "{reverses}",
                "reversal_balance_transaction_id": "{reversal}",
                "replacement_withdrawal_id": "{replacement}",
            },
        ),
        _progress("half filled", 3, 30_000),
        _progress("half filled", 4, 30_000),
        # 30,000 of principal that nobody filled and 803 of the fee go back; 70,000 and 1,872 stay debited.
        DayEffect(
            "half filled",
            "refund_unfilled",
            "withdrawal:{withdrawal_id}:refund_unfilled",
            {
                "withdrawal_id": "{withdrawal_id}",
                "ticket": "{ticket}",
                "refunded_minor": 30_000,
                "fee_unused_minor": 803,
                "release_minor": 30_803,
                "debited_minor": 71_872,
            },
        ),
        _status("replacement", 1),
        _close("replacement"),
    ),
    pages={
        "three chunks": DayPage("ถอนสำเร็จ 1,000 บาท", "Withdrawal complete, 1,000 THB", 3),
        "recalled": DayPage("ถอนสำเร็จ 1,000 บาท", "Withdrawal complete, 1,000 THB", 3),
        "half filled": DayPage(
            "ส่วนที่เหลือ 300 บาท ถูกคืนเข้าบัญชีของคุณแล้ว", "The remaining 300 THB has been returned to your account", 2
        ),
        "replacement": DayPage("ถอนสำเร็จ 400 บาท", "Withdrawal complete, 400 THB", 1),
    },
)


def day(seed: int = SEED) -> World:
    """The simulator's day of withdrawals."""
    return scenario_named(WITHDRAWAL_DAY, seed, merchant_id=MERCHANT_ID)


def arrivals(world: World) -> list[SimEvent]:
    """Every event that is delivered, shuffled, and some of them once more; one event may stand there twice.

    The first one is the day's first: a sequence is watched from the first number on that was seen.
    """
    chance = random.Random(f"{world.seed}/arrivals")  # noqa: S311  repeatable on purpose; nothing here is a secret
    first, *others = [event for event in world.events if not event.never_delivered]
    chance.shuffle(others)
    line = [first, *others]
    for event in chance.sample(others, k=REPEATS):
        line.insert(chance.randint(line.index(event) + 1, len(line)), event)
    return line


def orders_of(world: World) -> dict[OrderName, str]:
    """The day's withdrawals by name."""
    return dict(zip(get_args(OrderName), world.objects, strict=True))


def missing_of(world: World) -> SimEvent:
    """The one event that is never delivered."""
    (found,) = [event for event in world.events if event.never_delivered]
    return found


def names_of(world: World, object_id: str) -> dict[str, str]:
    """What the braces of keys and payloads stand for; read from the events themselves."""
    names = {"withdrawal_id": object_id}
    for event in world.events:
        if event.object_id != object_id:
            continue
        names[f"v{event.version}"] = event.id
        data = json.loads(event.body)["data"]
        if "merchant_reference" in data["object"]:
            names["ticket"] = data["object"]["merchant_reference"]
        if "reversal" in data:
            names["leg_ref"] = data["fill"]["leg_ref"]
            names["reverses"] = data["reversal"]["reverses_balance_transaction_id"]
            names["reversal"] = data["reversal"]["balance_transaction_id"]
            names["replacement"] = data["replacement_withdrawal_id"]
    return names
