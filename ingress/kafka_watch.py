"""Whether Kafka can be relied on now: asked for again and again, so that an idle door knows it too."""

import asyncio
from collections.abc import Callable

from ingress.door import Door
from ingress.publisher import Publisher
from ingress.topics import RECORD_OVERHEAD_BYTES, KnownTopics, check
from schemas.topics import TopicNames
from tallyhook import logs
from tallyhook.errors import KafkaUnavailable
from tallyhook.settings import Settings

_log = logs.logger(__name__)

PROBE_EVERY_SECONDS = 2.0
PROBE_TIMEOUT_SECONDS = 2.0
CHECK_TIMEOUT_SECONDS = 5.0
SLOW_CONFIRMATION_SECONDS = 2.0
FAILURE_ECHO_SECONDS = 5.0
"""After a record was not confirmed the door is not ready this long, unless another one is confirmed."""
TEST_TOPIC_EVERY_PROBES = 15


class KafkaWatch:
    """Checks the topics, opens the door, and goes on asking whether Kafka answers.

    Args:
        on_fatal: called on the loop when the publisher can never send again.
    """

    def __init__(self, settings: Settings, door: Door, on_fatal: Callable[[str], None]) -> None:
        self._settings, self._door, self._on_fatal = settings, door, on_fatal
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
        probes = 0
        while True:
            await asyncio.sleep(PROBE_EVERY_SECONDS)
            probes += 1
            await self._probe()
            if not known.test_events and probes % TEST_TOPIC_EVERY_PROBES == 0 and self._trouble is None:
                known = await self._look_again(known)

    async def _first_answer(self) -> KnownTopics:
        warned = False
        while True:
            try:
                return await self._check()
            except KafkaUnavailable as failure:
                self._trouble = str(failure)
                if not warned:
                    _log.warning("waiting for Kafka; every webhook is answered 503 meanwhile", reason=str(failure))
                    warned = True
            await asyncio.sleep(PROBE_EVERY_SECONDS / 4)

    def _open(self, known: KnownTopics) -> None:
        settings = self._settings
        wanted_bytes = settings.ingress.max_body_bytes
        self._door.max_body_bytes = min(wanted_bytes, max(0, known.record_limit_bytes - RECORD_OVERHEAD_BYTES))
        if self._door.max_body_bytes < wanted_bytes:
            _log.warning(
                "bodies are limited by a topic, not by TALLYHOOK_INGRESS_MAX_BODY_BYTES",
                topic=known.limit_of,
                record_limit_bytes=known.record_limit_bytes,
                max_body_bytes=self._door.max_body_bytes,
                wanted_bytes=wanted_bytes,
            )
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
        self._note_test_topic(found)
        return found

    async def _check(self) -> KnownTopics:
        settings = self._settings
        return await asyncio.to_thread(check, settings.kafka, settings.installation, CHECK_TIMEOUT_SECONDS)

    def _note_test_topic(self, known: KnownTopics) -> None:
        self._door.takes_test_events = known.test_events
        if not known.test_events and self._settings.installation.livemode:
            _log.warning(
                "test events (livemode: false) go to the dead letters: their topic does not exist; "
                "create it with `tallyhook topics apply`",
                topic=TopicNames(self._settings.installation.test_prefix).events,
            )
