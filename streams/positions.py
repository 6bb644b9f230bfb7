"""Before work and beside it: do the topics fit, and does every committed position lie in its topic's range?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import OffsetSpec

from schemas.topics import TopicNames
from tallyhook.errors import KafkaUnavailable, PositionLost, TopicMismatch
from tallyhook.kafka import plain_reader, why_no_positions, words
from tallyhook.lag_reader import quiet_client
from tallyhook.settings import KafkaSettings

APPLY = "create it with `tallyhook topics apply`"


def commit_note(topic_id: str) -> str:
    """What to write beside a committed offset.

    It ends with a NUL: confluent-kafka reads the note as a C string, but librdkafka does not terminate it, so that it
    would run on into foreign memory (seen: a UnicodeDecodeError now and then).
    """
    return f"{topic_id}\0"


@dataclass(frozen=True, slots=True)
class Position:
    """One partition of `events`, as the broker knows it.

    Args:
        low: the earliest offset it still has.
        high: the offset of the next record to come.
        committed: the offset the group goes on from; None before the first commit.
        note: what was written beside the commit: the topic's id.
    """

    low: int
    high: int
    committed: int | None
    note: str

    @property
    def lag(self) -> int:
        """Events not yet judged."""
        return self.high - max(self.low, self.committed or 0)


class Positions:
    """Asks the broker about topics and positions, without being a member of the group.

    Args:
        kafka: how to connect.
        names: the installation's topics.
        group: the Faust app's id.
        timeout_seconds: of one request.
    """

    def __init__(self, kafka: KafkaSettings, names: TopicNames, group: str, timeout_seconds: float) -> None:
        self._admin = quiet_client(kafka)
        # It never subscribes, so it is no member. The admin client's list_consumer_group_offsets is no way out: it ends
        # the process with SIGSEGV when the group's coordinator is not known yet (librdkafka 2.16).
        options: dict[str, Any] = {"group.id": group, "log_level": 2}
        self._reader = plain_reader(kafka, **options)
        self._names, self._group, self._timeout_seconds = names, group, timeout_seconds

    def check_topics(self, partitions: int) -> str:
        """The id of `events`; raises TopicMismatch when a topic is missing or has another partition count.

        Raises KafkaUnavailable when the broker does not answer.
        """
        wanted = (self._names.events, self._names.state_changes, self._names.dead_letters)
        found = self._describe(wanted)
        for name in wanted:
            if name not in found:
                raise TopicMismatch(f"topic {name} does not exist: {APPLY}")
        for name in wanted[:2]:
            count = len(found[name].partitions)
            if count != partitions:
                raise TopicMismatch(
                    f"topic {name} has {count} partitions, TALLYHOOK_PARTITIONS={partitions}: {wanted[0]} and "
                    f"{wanted[1]} must both have the installation's count; see `tallyhook topics show` and "
                    f"`tallyhook topics apply`"
                )
        return str(found[self._names.events].topic_id)

    def events_topic_id(self) -> str | None:
        """The id that `events` has now; None when it does not exist. Raises KafkaUnavailable."""
        found = self._describe((self._names.events,))
        return str(found[self._names.events].topic_id) if found else None

    def _describe(self, names: tuple[str, ...]) -> dict[str, Any]:
        futures = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=self._timeout_seconds)
        found = {}
        for name, future in futures.items():
            try:
                found[name] = future.result()
            except KafkaException as failure:
                if failure.args[0].name() not in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
                    raise KafkaUnavailable(f"topic {name}: {words(failure.args[0])}") from failure
        return found

    def read(self, partitions: Mapping[int, object] | range | list[int]) -> dict[int, Position]:
        """Where each partition stands now; raises KafkaUnavailable."""
        tps = [TopicPartition(self._names.events, number) for number in partitions]
        if not tps:
            return {}
        try:
            # In this order, since all three move: a commit is never below the earlier low nor above the later high.
            lows = self._offsets(tps, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
            committed = {tp.partition: tp for tp in self._committed(tps)}
            highs = self._offsets(tps, OffsetSpec.latest())  # type: ignore[no-untyped-call]
            for tp in committed.values():
                if tp.error is not None:
                    raise KafkaException(tp.error)
        except KafkaException as failure:
            raise KafkaUnavailable(f"positions of {self._names.events}: {words(failure.args[0])}") from failure
        return {
            number: Position(lows[number], highs[number], tp.offset, tp.metadata or "")
            if tp.offset >= 0  # librdkafka's word for no commit is a negative one
            else Position(lows[number], highs[number], None, "")
            for number, tp in committed.items()
        }

    def _committed(self, tps: list[TopicPartition]) -> list[TopicPartition]:
        try:
            return self._reader.committed(tps, timeout=self._timeout_seconds)
        except KafkaException as failure:
            reason = why_no_positions(self._reader, failure.args[0], self._group)
            raise KafkaUnavailable(f"positions of {self._names.events}, {reason}") from failure

    def _offsets(self, tps: list[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
        answer = self._admin.list_offsets(dict.fromkeys(tps, spec), request_timeout=self._timeout_seconds)
        return {tp.partition: future.result().offset for tp, future in answer.items()}

    def check(self, found: Mapping[int, Position], topic_id: str) -> None:
        """Raises PositionLost when going on from a position would skip or repeat silently."""
        for number, position in found.items():
            where = f"{self._names.events}[{number}]"
            if position.committed is None:
                continue
            if position.note not in ("", topic_id):
                raise PositionLost(
                    f"{where}: the group {self._group} worked with topic id {position.note}, the topic's id is now "
                    f"{topic_id}: it was made anew; restore it, or use a new TALLYHOOK_TOPIC_PREFIX"
                )
            if not position.low <= position.committed <= position.high:
                raise PositionLost(
                    f"{where}: position {position.committed} of group {self._group} lies outside of the topic's range "
                    f"{position.low}..{position.high}; note the time, reset the group's offset, then have the gateway "
                    "send the events of that time again and look with `tallyhook audit`"
                )
