"""The checks `arrival_numbers` and `outbox_numbers`: one fenced writer gave the numbers, so none may be missing."""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from schemas.topics import TopicNames
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.scope import shown
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.settings import Settings

INBOX_KEPT_DAYS = 31
"""Processed events are pruned from the inbox after so many days at the soonest: so long a sender may come again."""

_END = 1 << 62


@dataclass(slots=True)
class Kept:
    """What pruning has left, by partition.

    Args:
        inbox_since: events that were received after this moment are never pruned.
        outbox_since: rows that were written after this moment are never pruned.
        first_arrival: the lowest arrival number of a processed event; 0 where nothing was pruned.
        first_seq: the lowest outbox number; 0 where nothing was pruned.
    """

    inbox_since: datetime
    outbox_since: datetime
    first_arrival: dict[int, int] = field(default_factory=dict)
    first_seq: dict[int, int] = field(default_factory=dict)

    def inbox_is_pruned(self, partition: int | None) -> bool:
        """Whether events of this partition (None: of any) may be gone."""
        if partition is None:
            return any(self.first_arrival.values())
        return self.first_arrival.get(partition, 0) > 0

    def outbox_is_pruned(self, partition: int, written_at: datetime) -> bool:
        """Whether a row of that moment may be gone."""
        return self.first_seq.get(partition, 0) > 0 and written_at < self.outbox_since


def check_numbers(settings: Settings, snapshot: Snapshot, arrivals: Check, outbox: Check) -> Kept:
    """Answers both checks and gives what pruning has left."""
    kept = Kept(
        snapshot.at - timedelta(days=INBOX_KEPT_DAYS),
        snapshot.at - timedelta(days=settings.relay.outbox_retention_days),
    )
    _check_arrivals(settings, snapshot, arrivals, kept)
    _check_outbox(settings, snapshot, outbox, kept)
    return kept


def _check_arrivals(settings: Settings, snapshot: Snapshot, check: Check, kept: Kept) -> None:
    gaps = _ArrivalGaps(settings, snapshot, check)
    ends: dict[int, Sequence[Any]] = {partition: rest for partition, *rest in snapshot.rows("arrival_ends")}
    lowest = {partition: rest[3] or 0 for partition, rest in ends.items()}
    highest_of = {partition: rest[1] for partition, rest in ends.items()}
    asked = _asked("arrival", snapshot, check, lowest, highest_of)
    for partition, position in snapshot.applied.items():
        events, highest, last_source, first, first_source, parked_before = ends.pop(
            partition, (0, -1, -1, None, None, 0)
        )
        check.looked_at += events
        if first is None:
            # Nothing but parked events, or nothing at all.
            first, first_source, parked_before = position.next_arrival_seq, _END, events
        gone = first - parked_before - gaps.explained(partition, -1, first_source)
        kept.first_arrival[partition] = first if gone > 0 else 0
        check.leave_out("arrival numbers below the lowest processed event: pruned", gone)
        if highest >= position.next_arrival_seq:
            check.fail(
                f"inbox partition {partition} has number {highest}, but the next to be given is"
                f" {position.next_arrival_seq}: sink_offsets was set back",
                partition=partition,
                arrival_seq=highest,
            )
        elif first < position.next_arrival_seq and highest < position.next_arrival_seq - 1:
            gaps.report(partition, highest + 1, position.next_arrival_seq - 1, last_source, _END)
    for partition, before, number, source_before, source in snapshot.walk("arrival_gaps", asked):
        if before >= kept.first_arrival.get(partition, 0):
            gaps.report(partition, before + 1, number - 1, source_before, source)
    for partition in ends:
        check.fail(f"inbox partition {partition} has rows, and the sink never had that partition", partition=partition)
    for object_id, low, high in snapshot.walk("scattered"):
        check.fail(
            f"events of object {object_id} lie in partitions {low} and {high}: their order is lost", object_id=object_id
        )


class _ArrivalGaps:
    """Tells numbers that are lost from those of events that were set aside after they had waited."""

    def __init__(self, settings: Settings, snapshot: Snapshot, check: Check) -> None:
        self._check = check
        # Eight bytes an event: of these there may be many where a claim is contradicted again and again.
        self._dropped: dict[int, array[int]] = defaultdict(lambda: array("q"))
        events = TopicNames(settings.installation.topic_prefix).events
        for partition, offset in snapshot.walk("dropped", {"events": events}):
            self._dropped[partition].append(offset)

    def explained(self, partition: int, source_low: int, source_high: int) -> int:
        """How many events between two sources were set aside after they had waited."""
        sources = self._dropped[partition]
        # A replay that was judged anew has an old source and a new number.
        low, high = sorted((source_low, source_high))
        return max(0, bisect_left(sources, high) - bisect_right(sources, low))

    def report(self, partition: int, low: int, high: int, source_low: int, source_high: int) -> None:
        """Numbers were given in the order of the sources, so those that were set aside lie between the neighbours'."""
        explained = self.explained(partition, source_low, source_high)
        if high - low + 1 > explained:
            self._check.fail(
                f"inbox partition {partition}: arrival numbers {low} to {high} are missing"
                + (f", and only {explained} of them were set aside after they had waited" if explained else ""),
                partition=partition,
                arrival_seq=low,
            )


def _asked(
    what: str, snapshot: Snapshot, check: Check, lowest: Mapping[int, int], highest: Mapping[int, int]
) -> dict[str, list[int]]:
    """From which number on gaps are looked for in each partition, as the questions take it; the others are named.

    A gap lies between two numbers, so the one before the first that is asked for belongs to them.
    """
    firsts = dict.fromkeys(highest, 0)
    if snapshot.since is not None:
        found = {
            partition: first if before is None else before
            for partition, first, before in snapshot.rows(f"{what}_firsts", {"since": snapshot.since})
        }
        firsts = {partition: found.get(partition, highest[partition]) for partition in highest}
        check.leave_out(
            f"{what} numbers from before {shown(snapshot.since)}, left out by --since",
            sum(max(0, first - lowest[partition]) for partition, first in firsts.items()),
        )
    return {"partitions": list(firsts), "firsts": list(firsts.values())}


def _check_outbox(settings: Settings, snapshot: Snapshot, check: Check, kept: Kept) -> None:
    ends = {partition: rest for partition, *rest in snapshot.rows("outbox_ends")}
    asked = _asked(
        "outbox",
        snapshot,
        check,
        {partition: rest[0] for partition, rest in ends.items()},
        {partition: rest[1] for partition, rest in ends.items()},
    )
    for partition, position in snapshot.applied.items():
        lowest, highest, count = ends.pop(partition, (0, -1, 0))
        check.looked_at += count
        kept.first_seq[partition] = lowest
        check.leave_out(
            f"outbox numbers below the lowest row: pruned after {settings.relay.outbox_retention_days:g} days", lowest
        )
        if highest != position.next_outbox_seq - 1:
            check.fail(
                f"outbox partition {partition} ends at row {highest}, but the next number to be given is"
                f" {position.next_outbox_seq}: "
                + (
                    "rows at its end are missing" if highest < position.next_outbox_seq else "sink_offsets was set back"
                ),
                partition=partition,
                seq=min(highest + 1, position.next_outbox_seq),
            )
    for partition, before, number in snapshot.walk("outbox_gaps", asked):
        check.fail(
            f"outbox partition {partition}: rows {before + 1} to {number - 1} are missing, though later ones are there",
            partition=partition,
            seq=before + 1,
        )
    for partition in ends:
        check.fail(f"outbox partition {partition} has rows, and the sink never had that partition", partition=partition)
