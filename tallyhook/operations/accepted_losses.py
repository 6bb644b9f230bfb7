"""Giving up records that are gone before the sink applied them: by a person, by name, and for good.

A sink never jumps over what it has not applied. Where its stored position lies outside of what the topic holds, it
stops and says so; here a person moves the position, and who did it, why and over what is kept beside it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from sinks import migrations
from sinks.fence import TopicRange
from sinks.installed import check_topic
from tallyhook import kafka, logs
from tallyhook.errors import DatabaseUnavailable, TallyhookError, TopicMismatch, UsageError
from tallyhook.postgres import Connection, Queries
from tallyhook.settings import Settings

REASON_CHARS_MAX = 1000
ACTOR_CHARS_MAX = 200
OFFSET_MAX = (1 << 63) - 1

LOCK_SECONDS = 5.0
"""How long a worker's transaction is waited for."""

MOVING_SECONDS = 5.0
"""A live worker that works commits well within it: a batch is 50 ms, and what it has fetched it applies at once."""

LOOK_SECONDS = 0.1

_log = logs.logger(__name__)


class NothingLost(TallyhookError):
    """The sink can go on from where it is: there is nothing to be given up, and nothing was changed."""


class LossRefused(TallyhookError):
    """The loss cannot be accepted in this way; nothing was changed."""


@dataclass(frozen=True, slots=True)
class LostPosition:
    """A stored position outside of what its topic holds.

    Args:
        topic: full name, and `topic_id` the broker's id of it.
        next_offset: the first offset that was not applied; 0 where nothing was.
        held: what the topic holds now.
    """

    topic: str
    topic_id: str
    partition: int
    next_offset: int
    held: TopicRange

    @property
    def records_gone(self) -> int:
        """Offsets that were not applied and are gone; 0 where the broker lost the end, whose records were applied."""
        return max(0, self.held.low - self.next_offset)

    @property
    def to_offset(self) -> int:
        """Where the sink best goes on.

        That is the beginning of what is there. Where the broker lost the end, new records may have taken the numbers
        of applied ones, so that only going over everything once more misses none; what is known counts once.
        """
        return self.held.low


@dataclass(frozen=True, slots=True)
class AcceptedLoss:
    """What was given up, or would be.

    Args:
        accepted_at: None in a dry run, which changes nothing.
    """

    lost: LostPosition
    to_offset: int
    actor: str
    reason: str
    accepted_at: datetime | None


class Losses:
    """The lost positions of one topic that a sink applies.

    Args:
        connection: autocommit, used by nobody else.
        topic: the full name of `state-changes` or `dead-letters`.

    Raises:
        SchemaMismatch, TopicMismatch: schema or topic is not the one that was installed.
        KafkaUnavailable: the broker does not answer.
    """

    def __init__(self, connection: Connection, settings: Settings, topic: str) -> None:
        migrations.check(connection, settings.installation)
        self._connection, self._settings, self._topic = connection, settings, topic
        self._queries = Queries("tallyhook.operations", "accepted_losses.sql", settings.installation.schema_name)
        self._topic_id = check_topic(settings, connection, topic)

    def find(self) -> list[LostPosition]:
        """Every lost position of the topic, by partition.

        Raises:
            TopicMismatch: a stored position belongs to another topic of the same name.
            KafkaUnavailable: the broker does not answer.
        """
        positions = self._positions()
        found = []
        for partition, held in self._held(range(self._settings.installation.partitions)).items():
            topic_id, next_offset, _ = positions.get(partition, (self._topic_id, 0, False))
            self._demand_same_topic(topic_id)
            if not held.low <= next_offset <= held.high:
                found.append(LostPosition(self._topic, self._topic_id, partition, next_offset, held))
        return found

    def accept(self, partition: int, to_offset: int, *, actor: str, reason: str, dry_run: bool) -> AcceptedLoss:
        """Moves a lost position and notes who did it; the sinks go on by themselves within seconds.

        The partition is claimed in the same transaction, so that a worker that still holds it writes nothing more.

        Raises:
            UsageError: there is no such partition; actor or reason is empty or too long.
            NothingLost: the position lies within what the topic holds.
            LossRefused: `to_offset` would give up more than is lost, or a worker still applies the partition.
            TopicMismatch: the stored position belongs to another topic of the same name.
            DatabaseUnavailable: a worker's transaction holds the position.
        """
        actor, reason = _text("--actor", actor, ACTOR_CHARS_MAX), _text("--reason", reason, REASON_CHARS_MAX)
        count = self._settings.installation.partitions
        if not 0 <= partition < count:
            raise UsageError(f"--partition {partition}: {self._topic} has the partitions 0 to {count - 1}")
        held = self._held([partition])[partition]
        topic_id, next_offset, owner_lives = self._positions().get(partition, (self._topic_id, 0, False))
        lost = self._judge(partition, topic_id, next_offset, held, to_offset)
        if owner_lives:
            self._demand_rest(lost)
        if dry_run:
            return AcceptedLoss(lost, to_offset, actor, reason, None)
        try:
            accepted = self._move(lost, to_offset, actor, reason)
        except psycopg.errors.LockNotAvailable:
            raise DatabaseUnavailable(
                f"partition {partition} of {self._topic} is held by another session for more than {LOCK_SECONDS:g} s:"
                f" nothing was changed. Look for locks on {self._settings.installation.schema_name}.sink_offsets in"
                " pg_locks, or stop the sinks, then try again"
            ) from None
        _log.warning(
            "records given up",
            topic=self._topic,
            partition=partition,
            from_offset=lost.next_offset,
            to_offset=to_offset,
            records=lost.records_gone,
            actor=actor,
            reason=reason,
        )
        return accepted

    def _positions(self) -> dict[int, tuple[str, int, bool]]:
        """Topic id, next offset and whether the owner's session is alive, by partition."""
        rows = self._connection.execute(self._queries["positions"], {"topic": self._topic}).fetchall()
        return {number: (topic_id, next_offset, lives) for number, topic_id, next_offset, lives in rows}

    def _held(self, partitions: range | list[int]) -> Mapping[int, TopicRange]:
        seconds = self._settings.kafka.request_timeout_seconds
        found = kafka.watermarks(self._settings.kafka, self._topic, list(partitions), seconds)
        return {number: TopicRange(*ends) for number, ends in found.items()}

    def _demand_same_topic(self, topic_id: str) -> None:
        if topic_id != self._topic_id:
            raise TopicMismatch(
                f"topic {self._topic} was deleted and made anew (id {topic_id}, now {self._topic_id}): stored positions"
                " name records of another topic, and no offset of this one follows them. Restore it, or install under a"
                " new prefix and schema with `tallyhook topics apply`"
            )

    def _judge(self, partition: int, topic_id: str, next_offset: int, held: TopicRange, to_offset: int) -> LostPosition:
        self._demand_same_topic(topic_id)
        place = f"partition {partition} of {self._topic}"
        if held.low <= next_offset <= held.high:
            raise NothingLost(
                f"{place} was applied up to {next_offset} and holds {held.low} to {held.high}: nothing is lost, the"
                " sink goes on from there. Nothing was changed"
            )
        lost = LostPosition(self._topic, self._topic_id, partition, next_offset, held)
        if next_offset < held.low and to_offset != held.low:
            raise LossRefused(
                f"{place} was applied up to {next_offset} and begins at {held.low}: only records {next_offset} to"
                f" {held.low - 1} are gone, so give --to-offset {held.low}, not {to_offset}. Nothing was changed"
            )
        if not held.low <= to_offset <= held.high:
            raise LossRefused(
                f"{place} holds {held.low} to {held.high}: --to-offset {to_offset} lies outside of it."
                f" --to-offset {held.low} goes over everything that is there once more. Nothing was changed"
            )
        return lost

    def _demand_rest(self, lost: LostPosition) -> None:
        """Refuses while the owner moves: what it fetched before the records went it applies yet."""
        deadline = time.monotonic() + MOVING_SECONDS
        while time.monotonic() < deadline:
            _, next_offset, owner_lives = self._positions()[lost.partition]
            if next_offset != lost.next_offset:
                raise LossRefused(
                    f"partition {lost.partition} of {lost.topic} is being applied by a sink that had fetched the"
                    f" records before they went (it moved from {lost.next_offset} to {next_offset}). Nothing was"
                    " changed; try again when /readyz of that sink names the range, or stop it"
                )
            if not owner_lives:
                return
            time.sleep(LOOK_SECONDS)

    def _move(self, lost: LostPosition, to_offset: int, actor: str, reason: str) -> AcceptedLoss:
        place: dict[str, object] = {"topic": lost.topic, "topic_id": lost.topic_id, "partition": lost.partition}
        with self._connection.transaction():
            self._connection.execute(self._queries["wait_at_most"], (f"{int(LOCK_SECONDS * 1000)}ms",))
            topic_id, epoch, next_offset = self._one("claim", place)
            self._demand_same_topic(topic_id)
            if next_offset != lost.next_offset:
                raise LossRefused(
                    f"partition {lost.partition} of {lost.topic} moved from {lost.next_offset} to {next_offset}"
                    " meanwhile. Nothing was changed; look again"
                )
            place |= {"epoch": epoch, "from_offset": next_offset, "to_offset": to_offset}
            place |= {"low": lost.held.low, "high": lost.held.high, "actor": actor, "reason": reason}
            self._connection.execute(self._queries["move"], place)
            (accepted_at,) = self._one("note", place)
        return AcceptedLoss(lost, to_offset, actor, reason, accepted_at)

    def _one(self, name: str, parameters: Mapping[str, object]) -> tuple[Any, ...]:
        row = self._connection.execute(self._queries[name], parameters).fetchone()
        if row is None:
            raise DatabaseUnavailable(f"PostgreSQL gave no row for {name}: nothing was changed")
        return row


def _text(option: str, text: str, chars_max: int) -> str:
    text = text.strip()
    if not text or len(text) > chars_max or "\0" in text:
        raise UsageError(f"{option}: must be a text of 1 to {chars_max} characters")
    return text
