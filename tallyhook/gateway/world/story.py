"""A story: the life of one order and its consequences, as drafts that wait for their sequence numbers."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tallyhook.gateway.world.facts import DepositFact, DepositTerms, WithdrawalFact, WithdrawalTerms
from tallyhook.gateway.world.model import Correlation
from tallyhook.gateway.world.names import Names

Json = dict[str, object]

STRANGE_MEMBERS: tuple[tuple[str, object], ...] = (
    ("risk_score", 0.25),
    ("labels", ["โปรโมชัน", None, "vip"]),
    ("routing", {"bank": {"code": "014", "name_th": "ไทยพาณิชย์"}, "hops": [1, [2, [3]]]}),
    ("shadow_version", 99_999_999),
    ("note", 'ขอบคุณ 🙏 "quoted" \\ back'),
    ("is_vip", False),
)
"""Members that no contract names: they must pass through unread."""


def iso(moment: datetime) -> str:
    """An instant as the gateway writes it: UTC, milliseconds, Z."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Movement:
    """A movement of the wallet before its balance is known; amounts are satang, above zero."""

    id: str
    type: str
    direction: str
    amount_minor: int
    bucket_from: str | None
    bucket_to: str | None
    source_id: str | None


@dataclass(frozen=True, slots=True)
class EventDraft:
    """An event without its sequence number.

    Args:
        object: `data.object`.
        siblings: the other members of `data`.
        envelope: unknown members beside the known ones.
        movement: set for balance transactions, whose balance_after is known only once all is in order.
        escaped: whether its JSON is pure ASCII.
    """

    id: str
    type: str
    at: datetime
    object: Json
    siblings: Json
    envelope: Json
    livemode: bool
    movement: Movement | None
    escaped: bool


@dataclass(frozen=True, slots=True)
class StateDraft:
    """A whole object from one moment on."""

    at: datetime
    version: int
    status: str
    snapshot: Json


@dataclass(slots=True)
class Stories:
    """Everything that was told so far, in no order."""

    events: list[EventDraft] = field(default_factory=list)
    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)
    states: dict[str, list[StateDraft]] = field(default_factory=dict)
    correlations: list[Correlation] = field(default_factory=list)
    deposit_terms: list[DepositTerms] = field(default_factory=list)
    deposit_facts: list[DepositFact] = field(default_factory=list)
    withdrawal_terms: list[WithdrawalTerms] = field(default_factory=list)
    withdrawal_facts: list[WithdrawalFact] = field(default_factory=list)


class Story:
    """One life while it is told: it has its own clock, which only goes forward.

    Args:
        scenario: the name of the life.
        rng: the only source of chance.
        names: gives ids.
        at: virtual time, UTC.
        told: where it is written down.
        users: the merchant's users.
        unknown_share: how many of the events carry members that nobody knows, 0 to 1.
        livemode: false tells test traffic, of which no trace may be left.
    """

    def __init__(
        self,
        scenario: str,
        rng: random.Random,
        names: Names,
        at: datetime,
        told: Stories,
        *,
        users: Sequence[str],
        unknown_share: float,
        livemode: bool = True,
    ) -> None:
        self.scenario, self.rng, self.at, self.told = scenario, rng, at, told
        self.names, self.users, self.livemode = names, users, livemode
        self._unknown_share = unknown_share

    def wait(self, low_seconds: float, high_seconds: float) -> None:
        """Lets time go by, whole milliseconds."""
        self.at += timedelta(milliseconds=self.rng.randint(int(low_seconds * 1000), int(high_seconds * 1000)))

    def wait_until(self, moment: datetime) -> None:
        """Lets time go by until then; the clock never goes back."""
        self.at = max(self.at, moment)

    def chance(self, share: float) -> bool:
        """True in that share of the cases, 0 to 1."""
        return self.rng.random() < share

    def event(
        self, event_type: str, snapshot: Json, siblings: Json | None = None, *, movement: Movement | None = None
    ) -> EventDraft:
        """Tells an event now and lets a few milliseconds go by, so that no two of a life share an instant."""
        draft = EventDraft(
            id=self.names.event(),
            type=event_type,
            at=self.at,
            object=snapshot | self._strange_members(),
            siblings=siblings or {},
            envelope=self._strange_members(),
            livemode=self.livemode,
            movement=movement,
            escaped=self.chance(0.3),
        )
        self.told.events.append(draft)
        self.at += timedelta(milliseconds=self.rng.randint(1, 9))
        return draft

    def state(self, object_id: str, kind: str, version: int, snapshot: Json) -> None:
        """Notes what the API shows of an object from now on; of test traffic it shows nothing."""
        if self.livemode:
            self.told.kinds.setdefault(object_id, (kind, self.scenario))
            draft = StateDraft(self.at, version, str(snapshot["status"]), snapshot)
            self.told.states.setdefault(object_id, []).append(draft)

    def _strange_members(self) -> Json:
        if not self.chance(self._unknown_share):
            return {}
        return dict(self.rng.sample(STRANGE_MEMBERS, self.rng.randint(1, 3)))
