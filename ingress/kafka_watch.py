"""Whether Kafka can be relied on now: asked for again and again, so that an idle door knows it too."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from ingress.door import Door
from ingress.endpoints import Endpoint
from ingress.publisher import Publisher
from ingress.topics import KnownTopics, check, record_overhead_bytes, refuse_losses
from schemas.topics import TopicNames
from tallyhook import logs
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.settings import Settings

_log = logs.logger(__name__)

PROBE_EVERY_SECONDS = 2.0
PROBE_TIMEOUT_SECONDS = 2.0
CHECK_TIMEOUT_SECONDS = 5.0
SLOW_CONFIRMATION_SECONDS = 2.0
FAILURE_ECHO_SECONDS = 5.0
"""After a record was not confirmed the door is not ready this long, unless another one is confirmed."""
CHECK_EVERY_PROBES = 5
"""Limits of records change seldom, and a topic that is made later is no hurry."""


class KafkaWatch:
    """Checks the topics, opens the door, and goes on asking whether Kafka answers and the topics are as they were.

    Args:
        endpoints: whose limits are told when a topic takes less.
        on_fatal: called on the loop when the publisher can never send again.
    """

    def __init__(
        self, settings: Settings, door: Door, endpoints: Sequence[Endpoint], on_fatal: Callable[[str], None]
    ) -> None:
        self._settings, self._door, self._endpoints, self._on_fatal = settings, door, endpoints, on_fatal
        self._trouble: str | None = "Kafka has not answered yet"
        self.publisher: Publisher | None = None

    def not_ready(self) -> list[str]:
        """Why events cannot be stored now."""
        reasons = [self._trouble] if self._trouble is not None else []
        publisher = self.publisher
        if publisher is not None:
            waiting_seconds = publisher.oldest_unconfirmed_seconds
            since_failure = asyncio.get_running_loop().time() - publisher.last_failed_at
            if waiting_seconds > SLOW_CONFIRMATION_SECONDS:
                reasons.append(f"Kafka has not confirmed a record for {waiting_seconds:.1f} s")
            elif since_failure < FAILURE_ECHO_SECONDS and publisher.last_failed_at > publisher.last_confirmed_at:
                reasons.append(f"Kafka did not confirm a record {since_failure:.1f} s ago")
        return reasons

    async def run(self) -> None:
        """Never returns; raises TopicMismatch when the installation's topics are not as they must be."""
        known = await self._first_answer()
        self._open(known)
        probes, doubted = 0, False
        while True:
            await asyncio.sleep(PROBE_EVERY_SECONDS)
            probes += 1
            await self._probe()
            if self._trouble is not None or not (doubted or probes % CHECK_EVERY_PROBES == 0):
                continue
            try:
                known = await self._look_again(known)
                doubted = False
            except TopicMismatch as mismatch:
                if doubted:
                    raise
                # A broker that has just started may not know every topic yet: the second look decides.
                _log.warning("the topics are looked at again", reason=str(mismatch))
                doubted = True

    async def _first_answer(self) -> KnownTopics:
        warned = False
        while True:
            try:
                known = await self._check()
            except KafkaUnavailable as failure:
                self._trouble = str(failure)
                if not warned:
                    _log.warning("waiting for Kafka; every webhook is answered 503 meanwhile", reason=str(failure))
                    warned = True
            else:
                # Only before the first event: a door that closes under way keeps nothing that the topic would lose.
                refuse_losses(known, self._settings.installation)
                return known
            await asyncio.sleep(PROBE_EVERY_SECONDS / 4)

    def _open(self, known: KnownTopics) -> None:
        settings = self._settings
        self._note_limits(known)
        self._note_test_topic(known)
        self.publisher = Publisher(
            settings.kafka,
            loop=asyncio.get_running_loop(),
            linger_ms=settings.profile.linger_ms,
            delivery_timeout_seconds=settings.ingress.delivery_timeout_seconds,
            record_limit_bytes=known.record_limit_bytes,
            on_fatal=self._on_fatal,
        )
        self._door.publisher = self.publisher
        self._trouble = None
        _log.info("the topics are as they must be; webhooks are taken")

    async def _open_anew(self, known: KnownTopics) -> None:
        """Another publisher, since the old one makes batches that a topic may no longer take.

        Webhooks are told to come again until the old one has nothing under way: two at once could turn the order of
        an object's events round.
        """
        self._trouble = "the record limit of a topic has changed"
        _log.info("the record limit of a topic has changed", record_limits_bytes=dict(known.record_limits_bytes))
        old, self._door.publisher = self.publisher, None
        if old is not None:
            await old.wait_idle()
            await asyncio.to_thread(old.close, self._settings.ingress.delivery_timeout_seconds)
        self._open(known)

    def _note_limits(self, known: KnownTopics) -> None:
        overhead_bytes = record_overhead_bytes(self._settings.ingress.max_id_bytes)
        limit_bytes = self._door.topic_body_bytes = known.body_limit_bytes(overhead_bytes)
        lowered = {e.name: e.max_body_bytes for e in self._endpoints if e.max_body_bytes > limit_bytes}
        if not known.record_limits_bytes:
            _log.warning(
                "the topics do not tell their record limits (is DescribeConfigs allowed?); Kafka's default is taken",
                record_limit_bytes=known.record_limit_bytes,
                max_body_bytes=limit_bytes,
            )
        if lowered:
            _log.warning(
                "bodies are limited by a topic, not by the endpoint's max_body_bytes",
                record_limits_bytes=dict(known.record_limits_bytes),
                kept_free_bytes=overhead_bytes,
                max_body_bytes=limit_bytes,
                wanted_bytes=lowered,
            )

    async def _probe(self) -> None:
        publisher = self.publisher
        if publisher is None:
            return
        if not publisher.alive:
            self._on_fatal("the thread that serves delivery reports has ended")
            return
        topic = TopicNames(self._settings.installation.topic_prefix).events
        try:
            await asyncio.to_thread(publisher.probe, topic, PROBE_TIMEOUT_SECONDS)
        except KafkaUnavailable as failure:
            if self._trouble is None:
                _log.warning("not ready", reason=str(failure))
            self._trouble = str(failure)
        else:
            if self._trouble is not None:
                _log.info("ready again")
            self._trouble = None

    async def _look_again(self, known: KnownTopics) -> KnownTopics:
        try:
            found = await self._check()
        except KafkaUnavailable:
            return known  # the next probe tells
        # A limit that was not told this time is as it was.
        found = replace(found, record_limits_bytes={**known.record_limits_bytes, **found.record_limits_bytes})
        if found.record_limit_bytes != known.record_limit_bytes:
            await self._open_anew(found)
        elif found.test_events != known.test_events:
            self._note_test_topic(found)
        return found

    async def _check(self) -> KnownTopics:
        settings = self._settings
        return await asyncio.to_thread(check, settings.kafka, settings.installation, CHECK_TIMEOUT_SECONDS)

    def _note_test_topic(self, known: KnownTopics) -> None:
        self._door.takes_test_events = known.test_events
        if not known.test_events and self._settings.installation.livemode:
            _log.warning(
                "test events (livemode: false) go to the dead letters: their topic does not exist, or this user "
                "may not see it; create it with `tallyhook topics apply`, or see `tallyhook topics acl`",
                topic=TopicNames(self._settings.installation.test_prefix).events,
            )
