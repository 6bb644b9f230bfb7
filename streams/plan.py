"""What a batch of deliveries comes to: which records go out, and which objects' states change. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from schemas.headers import Header, HeaderError, decode, verdict_headers
from schemas.reasons import Reason
from schemas.topics import TopicNames
from schemas.verdicts import StreamVerdict
from streams.guard import Delivery, Seen, judge

_OURS = frozenset({"ce_verdict", "ce_previousversion", "ce_previousstatus", "ce_sourcepartition", "ce_sourceoffset"})

DETAIL_CHARACTERS = 500


class Record(Protocol):
    """One record of `events` as Kafka delivered it."""

    @property
    def key(self) -> bytes | None:
        """The object id."""
        ...

    @property
    def value(self) -> bytes | None:
        """The signed bytes."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]:
        """In the order they were written; names may repeat, and hold lone surrogates for bytes that are not UTF-8."""
        ...

    @property
    def partition(self) -> int:
        """Its partition of `events`."""
        ...

    @property
    def offset(self) -> int:
        """Its place in the partition."""
        ...


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to publish; without a partition the key's hash chooses it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: list[Header]
    partition: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """The new state of one object, and the record that caused it last (its partition is the object's)."""

    seen: Seen
    cause: Record


@dataclass(slots=True)
class Plan:
    """All that a batch comes to.

    Args:
        outputs: one record a delivery, in the order of the deliveries.
        changes: the new state by key, for states that differ from what is stored.
        verdicts: deliveries by verdict.
        dead: records that could not be judged, by reason.
    """

    outputs: list[Outgoing] = field(default_factory=list)
    changes: dict[bytes, Change] = field(default_factory=dict)
    verdicts: Counter[StreamVerdict] = field(default_factory=Counter)
    dead: Counter[Reason] = field(default_factory=Counter)


class Planner:
    """Judges batches for one installation.

    Args:
        names: the installation's topics.
        livemode: the mode it works for; what is of the other goes to the dead letters.
    """

    def __init__(self, names: TopicNames, *, livemode: bool) -> None:
        self._events, self._state_changes, self._dead_letters = names.events, names.state_changes, names.dead_letters
        self._livemode = livemode

    def plan(self, records: Iterable[Record], recall: Callable[[Record], Seen | None], day: int) -> Plan:
        """Judges records in order on top of what `recall` knows of each object; every record gives one output.

        Args:
            records: deliveries, those of one object in their partition's order.
            recall: the stored state of a record's object; asked once an object.
            day: days since 1970-01-01 (UTC).
        """
        plan = Plan()
        overlay: dict[bytes, Seen | None] = {}
        for record in records:
            try:
                key, delivery = self._read(record, day)
            except _Unusable as unusable:
                plan.dead[unusable.reason] += 1
                plan.outputs.append(self._dead_letter(record, unusable))
                continue
            before = overlay[key] if key in overlay else recall(record)
            verdict, after = judge(before, delivery)
            overlay[key] = after
            if after is not before:
                plan.changes[key] = Change(after, record)
            plan.verdicts[verdict] += 1
            plan.outputs.append(self._output(record, verdict, before))
        return plan

    def _read(self, record: Record, day: int) -> tuple[bytes, Delivery]:
        key = record.key
        if key is None:
            raise _Unusable("record_headers", "the record has no key")
        if record.value is None:
            raise _Unusable("record_headers", "the record has no value")
        try:
            _check_names(record.headers)
            headers = decode(record.headers)
        except HeaderError as failure:
            raise _Unusable("record_headers", str(failure)) from failure
        if headers.subject.encode() != key:
            raise _Unusable("record_headers", "the record's key is not its ce_subject")
        if headers.livemode != self._livemode:
            mode = "true" if headers.livemode else "false"
            raise _Unusable("wrong_livemode", f"ce_livemode is {mode}, which this installation does not work for")
        return key, Delivery(headers.version, headers.status, day)

    def _output(self, record: Record, verdict: StreamVerdict, before: Seen | None) -> Outgoing:
        # A redriven event may carry what an earlier pass added; a reader takes the first of a repeated header, so
        # these must go: the identity of a delivery is its place in `events` now.
        headers: list[Header] = [header for header in record.headers if header[0] not in _OURS]
        headers += verdict_headers(
            verdict,
            None if before is None else before.version,
            None if before is None else before.status,
            record.partition,
            record.offset,
        )
        return Outgoing(self._state_changes, record.key, record.value, headers, record.partition)

    def _dead_letter(self, record: Record, unusable: "_Unusable") -> Outgoing:
        # Ours come first, because a reader takes the first of a repeated header.
        headers: list[Header] = [
            ("ce_stage", "streams"),
            ("ce_reason", unusable.reason),
            ("ce_detail", unusable.detail[:DETAIL_CHARACTERS]),
            ("ce_sourcetopic", self._events),
            ("ce_sourcepartition", str(record.partition)),
            ("ce_sourceoffset", str(record.offset)),
            *((_written(name), value) for name, value in record.headers),
        ]
        return Outgoing(self._dead_letters, record.key, record.value, headers, None)


def _check_names(headers: Sequence[Header]) -> None:
    for name, _ in headers:
        if not name.isascii() and _written(name) != name:
            raise HeaderError(f"header name {_written(name)} is not UTF-8")


def _written(name: str) -> str:
    """A header's name with the bytes that are not UTF-8 (lone surrogates here) spelled out, as in `x-\\xff`."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


class _Unusable(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail
