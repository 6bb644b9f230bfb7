"""Plays the demo's deposits against a running pipeline and compares what came of it with what must."""

import http.client
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tallyhook.errors import TallyhookError
from tallyhook.gateway.signing import SigningKey
from tallyhook.operations import demo_story as story
from tallyhook.operations.demo_stores import ReadEffect, Stores, compare_effects


@dataclass(frozen=True, slots=True)
class PlayedDelivery:
    """One POST and what became of it."""

    delivery: story.StoryDelivery
    status: int
    verdict: str | None
    reason: str | None


@dataclass
class Outcome:
    """What the demo saw, and where it differs from what must be (empty: it all agrees)."""

    deliveries: list[PlayedDelivery] = field(default_factory=list)
    balances: dict[str, int] = field(default_factory=dict)
    flags: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    effects: list[ReadEffect] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)


class Play:
    """One run of the story.

    Args:
        ingress_url: base URL of the door.
        key: signs as the gateway would.
        stores: the installation's.
    """

    def __init__(self, ingress_url: str, key: SigningKey, stores: Stores) -> None:
        self._address = urlsplit(ingress_url).netloc
        self._key, self._stores = key, stores

    def run(self, on_posted: Callable[[story.StoryDelivery, int], None]) -> Outcome:
        """Posts, waits until everything was judged and published, reads, compares."""
        for deposit in story.CORRELATIONS:
            if deposit != story.UNKNOWN_AT_FIRST:
                self._stores.correlate(deposit, *story.CORRELATIONS[deposit])
        statuses = []
        for delivery in story.DELIVERIES:
            status = self._post(delivery)
            statuses.append(status)
            on_posted(delivery, status)
            if delivery.correlate_after:
                self._stores.await_count("parked_event", 1, "the event to be parked")
                self._stores.correlate(story.UNKNOWN_AT_FIRST, *story.CORRELATIONS[story.UNKNOWN_AT_FIRST])
        accepted = sum(1 for status in statuses if status == http.client.OK)
        self._stores.await_count("judged", accepted, "every delivery to be judged")
        outcome = Outcome(deliveries=self._judged(statuses))
        outcome.balances = dict(self._stores.rows("balances"))
        outcome.flags = {
            claim: (deposit, version, amount) for claim, deposit, version, amount in self._stores.rows("flags")
        }
        outcome.effects = self._stores.effects()
        outcome.differences = compare(outcome)
        return outcome

    def _post(self, delivery: story.StoryDelivery) -> int:
        body = story.EVENTS[delivery.event].body
        headers = self._key.sign(delivery.event, int(time.time()), body)
        if delivery.forged:
            body = body.replace(b"500000", b"900000", 1)
        connection = http.client.HTTPConnection(self._address, timeout=15)
        try:
            connection.request("POST", "/webhooks", body, headers | {"content-type": "application/json"})
            return connection.getresponse().status
        except OSError as failure:
            raise TallyhookError(
                f"event {delivery.event} could not be posted to {self._address}: {failure}"
            ) from failure
        finally:
            connection.close()

    def _judged(self, statuses: list[int]) -> list[PlayedDelivery]:
        """Joins the deliveries of an event, in their order, with what the stores say of it in theirs."""
        verdicts: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
        for event_id, verdict, reason in self._stores.rows("verdicts"):
            verdicts[event_id].append((verdict, reason))
        played = []
        for delivery, status in zip(story.DELIVERIES, statuses, strict=True):
            waiting = verdicts[delivery.event] if status == http.client.OK else []
            verdict, reason = waiting.pop(0) if waiting else (None, None)
            played.append(PlayedDelivery(delivery, status, verdict, reason))
        return played


def compare(outcome: Outcome) -> list[str]:
    """Every difference between what came and what stands in the story; a sentence each."""
    differences = []
    for played in outcome.deliveries:
        wanted = played.delivery
        got, must = (played.status, played.verdict, played.reason), (wanted.status, wanted.verdict, wanted.reason)
        if got != must:
            differences.append(f"{wanted.event} ({wanted.note}): {got} instead of {must}")
    if outcome.balances != story.BALANCES:
        differences.append(f"balances: {outcome.balances} instead of {story.BALANCES}")
    if outcome.flags != story.FLAGS:
        differences.append(f"overpayment flags: {outcome.flags} instead of {story.FLAGS}")
    return differences + compare_effects(outcome.effects, story.EFFECTS)
