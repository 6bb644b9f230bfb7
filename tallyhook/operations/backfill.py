"""Backfill: events that never came are fetched from the gateway's API and published, as if the door had taken them.

The sink judges them like any other delivery, so that to fetch one twice, or to die in the middle, does nothing more
than to fetch it once. What the gateway's list has passed by and does not hold will never come: such gaps are closed as
unlisted, and a number that comes after all is taken in all the same.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from schemas.topics import TopicNames
from sinks.domain.sequences import Span, without
from tallyhook.clock import Clock
from tallyhook.errors import KafkaUnavailable
from tallyhook.operations.backfilled import Backfilled, Maker
from tallyhook.operations.confirmed_publisher import ConfirmedPublisher
from tallyhook.operations.gaps import GapTable
from tallyhook.operations.gateway_api import EventPage, GatewayApi, ListedEvent
from tallyhook.operations.gateway_http import GatewayRefused
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import Settings

SPANS_SHOWN_MAX = 10_000
"""Most parts of gaps that a dry run tells of one page."""

Fate = Literal["would be published", "published", "in the inbox", "not confirmed"]


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of one event.

    Args:
        record: its record; None where it is in the inbox already.
        why: why it is not confirmed, or why the record is a dead letter.
    """

    sequence: int
    fate: Fate
    record: Backfilled | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Unlisted:
    """Missing numbers that the gateway's list has passed by.

    Args:
        done: false in a dry run, which closes nothing.
    """

    span: Span
    done: bool


@dataclass(frozen=True, slots=True)
class NotReached:
    """Missing numbers behind the end of the gateway's list: whether they will be listed cannot be told yet."""

    numbers: int
    listed_up_to: int


@dataclass(frozen=True, slots=True)
class Passed:
    """The list is known up to this number now; for the progress bar."""

    sequence: int
    numbers: int


Outcome = Fetched | Unlisted | NotReached | Passed


class Backfill:
    """One run for one merchant.

    Args:
        connection: autocommit, used by nobody else.
        merchant: whose sequence; the API's key is that merchant's.
        publisher: None for a dry run, which changes nothing.
        stopping: once set, what is under way is waited for, and the run ends after it.
    """

    def __init__(
        self,
        connection: Connection,
        settings: Settings,
        api: GatewayApi,
        merchant: str,
        *,
        publisher: ConfirmedPublisher | None,
        actor: str,
        clock: Clock,
        stopping: threading.Event,
    ) -> None:
        schema = settings.installation.schema_name
        self._connection, self._api, self._merchant, self._actor = connection, api, merchant, actor
        self._publisher, self._clock, self._stopping = publisher, clock, stopping
        self._queries = Queries("tallyhook.operations", "backfill.sql", schema)
        self._table = GapTable(connection, schema)
        takes_test_events = True
        if publisher is not None:
            names, tests = TopicNames(settings.installation.topic_prefix), TopicNames(settings.installation.test_prefix)
            publisher.demand(names.events)
            publisher.demand(names.dead_letters)
            takes_test_events = publisher.partitions(tests.events) > 0
        self._maker = Maker(settings, merchant, takes_test_events=takes_test_events)

    @property
    def ceiling(self) -> int:
        """The highest number that was seen; there is no gap behind it."""
        head = self._table.heads(self._merchant).get(self._merchant)
        return -1 if head is None else head.last

    def begun(self, since_sequence: int) -> int | None:
        """Where an interrupted run with the same beginning had come to; None where there is none."""
        row = self._connection.execute(self._queries["find_begun"], (self._merchant, since_sequence)).fetchone()
        return None if row is None else int(row[0])

    def forget(self, since_sequence: int) -> None:
        """The next run with this beginning starts from there."""
        self._connection.execute(self._queries["forget_begun"], (self._merchant, since_sequence))

    def missing(self, ceiling: int) -> int:
        """How many open numbers there are up to the ceiling."""
        return self._table.count_open(self._merchant, -1, ceiling)

    def since(self, since_sequence: int) -> Iterator[Outcome]:
        """Fetches every event behind a number, publishes those that are not in the inbox, and notes how far it came.

        Raises:
            KafkaUnavailable: not everything was confirmed; what was told as published is.
        """
        position = self.begun(since_sequence)
        position = since_sequence if position is None else position
        while not self._stopping.is_set():
            page = self._api.events(position)
            yield from self._take(page, page.events)
            if self._stopping.is_set():
                return
            if page.ends:
                if self._publisher is not None:
                    self.forget(since_sequence)
                return
            position = page.last
            if self._publisher is not None:
                progress = {"merchant": self._merchant, "since": since_sequence, "next": position}
                self._connection.execute(self._queries["save_begun"], progress)

    def gaps(self, ceiling: int) -> Iterator[Outcome]:
        """Fetches what is missing and open up to the ceiling; pages without a missing number are not asked for.

        Raises:
            KafkaUnavailable: not everything was confirmed; what was told as published is.
        """
        position = -1
        while not self._stopping.is_set():
            gap = self._table.next_open(self._merchant, position, ceiling)
            if gap is None:
                return
            page = self._api.events(gap.first - 1)
            wanted = self._table.open_among(self._merchant, [event.sequence for event in page.events])
            yield from self._take(page, [event for event in page.events if event.sequence in wanted])
            position = page.last
            if page.ends:
                left = self._table.count_open(self._merchant, position, ceiling)
                if left:
                    yield NotReached(left, position)
                return

    def _take(self, page: EventPage, events: Sequence[ListedEvent]) -> Iterator[Outcome]:
        self._demand_account(page)
        missing = self._table.count_open(self._merchant, page.since, page.last)
        records = self._publishable(events)
        known = [event for event in events if event.sequence not in records]
        for event in known:
            yield Fetched(event.sequence, "in the inbox", None)
        yield from self._publish(records)
        if not self._stopping.is_set():
            yield from self._close_unlisted(page)
            yield Passed(page.last, missing)

    def _demand_account(self, page: EventPage) -> None:
        """A key of another account would have its events taken for ours, and our gaps for numbers that never were."""
        named = {merchant for event in page.events if (merchant := self._maker.merchant(event.raw)) is not None}
        if named and self._merchant not in named:
            raise GatewayRefused(
                f"the gateway's API lists events of {', '.join(sorted(named)[:5])} and none of {self._merchant}:"
                " nothing of this page was published; check TALLYHOOK_GATEWAY_API_KEY and --merchant"
            )

    def _publishable(self, events: Sequence[ListedEvent]) -> dict[int, Backfilled]:
        now = self._clock.now()
        made = {event.sequence: self._maker.record(event.raw, now) for event in events}
        ids = [record.event_id for record in made.values() if record.place == "events"]
        found = self._connection.execute(self._queries["in_inbox"], (ids,)).fetchall() if ids else []
        inbox = {row[0] for row in found}
        return {
            sequence: record
            for sequence, record in made.items()
            if record.place != "events" or record.event_id not in inbox
        }

    def _publish(self, records: dict[int, Backfilled]) -> Iterator[Fetched]:
        if self._publisher is None:
            for sequence, record in records.items():
                yield Fetched(sequence, "would be published", record, record.why)
            return
        failures = self._publisher.publish(list(records.values()))
        for (sequence, record), failure in zip(records.items(), failures, strict=True):
            yield Fetched(sequence, "not confirmed" if failure else "published", record, failure or record.why)
        if any(failures) and not self._stopping.is_set():
            count = sum(1 for failure in failures if failure)
            raise KafkaUnavailable(f"{count} events are not confirmed by Kafka: run it again, it goes on where it was")

    def _close_unlisted(self, page: EventPage) -> Iterator[Unlisted]:
        """Numbers up to the last one of the page are listed on it, or never will be."""
        if page.last == page.since:
            return
        passed = without(Span(page.since + 1, page.last), [event.sequence for event in page.events])
        if self._publisher is None:
            for span in passed:
                for part in self._table.open_within(self._merchant, span, SPANS_SHOWN_MAX):
                    yield Unlisted(part, done=False)
            return
        reason = (
            f"the gateway lists {len(page.events)} events from {page.since + 1} to {page.last}, and not these"
            f" (asked {self._clock.now():%Y-%m-%d %H:%M:%S} UTC)"
        )
        for part in self._table.close(self._merchant, passed, "unlisted", reason=reason, actor=self._actor):
            yield Unlisted(part, done=True)
