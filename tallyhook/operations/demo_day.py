"""Plays the day of withdrawals against a running pipeline: shuffled, one event missing, then fetched by a backfill."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from zoneinfo import ZoneInfo

from pydantic import SecretStr

from tallyhook.clock import SystemClock
from tallyhook.gateway.posting import Poster
from tallyhook.gateway.signing import SigningKey
from tallyhook.gateway.world.expected import differences
from tallyhook.gateway.world.model import World
from tallyhook.operations import demo_day_story as story
from tallyhook.operations.backfill import Backfill, Fetched
from tallyhook.operations.backfill import Outcome as Told
from tallyhook.operations.confirmed_publisher import ConfirmedPublisher
from tallyhook.operations.demo_api import WorldApi
from tallyhook.operations.demo_day_story import OrderName
from tallyhook.operations.demo_stores import PATIENCE_SECONDS, ReadEffect, Stores
from tallyhook.operations.gaps import Gaps, GapTable
from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.gateway_http import GatewayHttp
from tallyhook.operations.timeline.answer import Question, ask
from tallyhook.operations.timeline.catalogue import Language
from tallyhook.operations.timeline.clock_words import DEFAULT_ZONE
from tallyhook.operations.timeline.page import Page
from tallyhook.settings import Settings

EVENTS_PER_SECOND = 200.0
PAGE_ZONES: dict[Language, str] = {"th": DEFAULT_ZONE, "en": "UTC"}
"""The Thai page in Thai time, as by default; the English one as the gateway's own screens are."""


@dataclass(frozen=True, slots=True)
class DayVerdict:
    """What was decided about one delivery of the order of three chunks, and the effect that it led to."""

    version: int
    verdict: str
    reason: str | None
    effect: str | None


@dataclass(frozen=True, slots=True)
class Pages:
    """The timeline of one order, twice."""

    thai: Page
    english: Page


@dataclass
class DayOutcome:
    """What came of the day.

    Args:
        ids: of the withdrawals.
        names: what `demo_day_story.names_of` says of each of them.
        missing: the number of the event that was not delivered.
        statuses: how often each HTTP answer came; 0 is none.
        before, after: the gaps without and with the backfill.
        told: what the backfill told.
        ends: where the tables are other than the simulator says they must be, after the backfill.
        effects: of the withdrawals.
    """

    ids: dict[OrderName, str]
    names: dict[OrderName, dict[str, str]]
    missing: int
    before: Gaps
    after: Gaps
    statuses: Counter[int] = field(default_factory=Counter)
    told: list[Told] = field(default_factory=list)
    verdicts: list[DayVerdict] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    effects: list[ReadEffect] = field(default_factory=list)
    pages: dict[OrderName, Pages] = field(default_factory=dict)


class DayPlay:
    """One run of the day.

    Args:
        settings: with the addresses of the running pipeline.
        webhooks_url: the endpoint of the day's merchant.
        key: signs as the gateway would.
        stores: the installation's.
        say: told of each step.
    """

    def __init__(
        self, settings: Settings, webhooks_url: str, key: SigningKey, stores: Stores, say: Callable[[str], None]
    ) -> None:
        self._settings, self._url, self._key = settings, webhooks_url, key
        self._stores, self._say = stores, say
        self._gaps = GapTable(stores.connection, stores.schema)
        self._judged_before = 0

    def run(self, world: World) -> DayOutcome:
        """Posts, waits, looks for the gap, fetches what is missing, waits again, and reads everything.

        Raises:
            TallyhookError: something that was waited for did not come.
        """
        self._judged_before = self._stores.count("judged")
        statuses = self._post(world)
        accepted = statuses[http.client.OK]
        self._await_judged(accepted)
        before = self._gaps_with({story.missing_of(world).sequence}, world)
        told = self._backfill(world)
        published = sum(1 for one in told if isinstance(one, Fetched) and one.fate == "published")
        self._await_judged(accepted + published)
        after = self._gaps_with(set(), world)
        ids = story.orders_of(world)
        effects = [effect for effect in self._stores.effects() if effect.subject in ids.values()]
        return DayOutcome(
            ids=ids,
            names={name: story.names_of(world, object_id) for name, object_id in ids.items()},
            missing=story.missing_of(world).sequence,
            before=before,
            after=after,
            statuses=statuses,
            told=told,
            verdicts=self._verdicts(world, ids["three chunks"], effects),
            ends=differences(world.expected_complete, self._stores.connection, self._stores.schema),
            effects=effects,
            pages={name: self._pages(object_id) for name, object_id in ids.items()},
        )

    def _post(self, world: World) -> Counter[int]:
        """One by one, so that each object's events reach its partition in the order of the story."""
        statuses: Counter[int] = Counter()
        line = story.arrivals(world)
        poster = Poster(self._url)
        try:
            for place, event in enumerate(line):
                headers = self._key.sign(event.id, int(time.time()), event.body)
                statuses[poster.post(event.body, headers).status] += 1
                if place == 0:
                    # Numbers below the first one that was seen are not missed, so this one must be it.
                    self._await_first(world.merchant_id)
        finally:
            poster.close()
        self._say(f"posted {len(line)} webhooks of {len(set(line))} events, shuffled by seed {world.seed}")
        return statuses

    def _await_first(self, merchant: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while merchant not in self._gaps.heads(merchant) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _await_judged(self, deliveries: int) -> None:
        self._stores.await_count("judged", self._judged_before + deliveries, "every delivery to be judged")

    def _gaps_with(self, missing: set[int], world: World) -> Gaps:
        """The gaps once exactly these numbers are missing up to the day's last; or as they are after a minute."""
        merchant, last = world.merchant_id, world.events[-1].sequence
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = self._gaps.find(self._settings.gaps, SystemClock().now(), merchant=merchant)
            head = found.heads.get(merchant)
            if head is not None and head.last == last and missing_in(found) == missing:
                return found
            if time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def _backfill(self, world: World) -> list[Told]:
        clock, stopping = SystemClock(), threading.Event()
        with WorldApi(world) as served:
            self._say(f"the simulator's API answers at {served.url}")
            reach = {"url": served.url, "key": SecretStr(served.key)}
            settings = replace(self._settings, gateway_api=self._settings.gateway_api.model_copy(update=reach))
            api = GatewayApi(GatewayHttp(settings.gateway_api, clock=clock, stopping=stopping))
            publisher = ConfirmedPublisher(settings, rate_per_second=EVENTS_PER_SECOND, clock=clock, stopping=stopping)
            work = Backfill(
                self._stores.connection,
                settings,
                api,
                world.merchant_id,
                publisher=publisher,
                actor="demo",
                clock=clock,
                stopping=stopping,
            )
            try:
                return list(work.gaps(work.ceiling))
            finally:
                api.close()

    def _verdicts(self, world: World, object_id: str, effects: Sequence[ReadEffect]) -> list[DayVerdict]:
        """All of the object's deliveries, in the order of their places in its partition."""
        versions = {event.id: event.version for event in world.events if event.object_id == object_id}
        causes = {effect.cause: effect.effect for effect in effects}
        found = []
        for event_id, verdict, reason in self._stores.rows("verdicts"):
            version = versions.get(event_id)
            if version is not None:
                effect = None if verdict == "redelivered" else causes.get(event_id)
                found.append(DayVerdict(version, verdict, reason, effect))
        return found

    def _pages(self, object_id: str) -> Pages:
        return Pages(self._page(object_id, "th"), self._page(object_id, "en"))

    def _page(self, object_id: str, language: Language) -> Page:
        zone = ZoneInfo(PAGE_ZONES[language])
        question = Question(object_id, "id", language, zone, support=False, limit=1)
        answer = ask(self._stores.connection, self._settings.installation, question)
        if answer is None:
            return Page(object_id, "", None, language, str(zone), ())
        return answer.objects[0].page


def missing_in(gaps: Gaps) -> set[int]:
    """The open numbers of the ranges that were found."""
    return {number for gap in gaps.gaps for number in range(gap.first, gap.last + 1)}
