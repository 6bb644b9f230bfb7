"""The checks `arrival_numbers` and `outbox_numbers`: one fenced writer gave the numbers, so none may be missing."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from schemas.topics import TopicNames
from tallyhook.operations.audit.findings import Check
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.settings import Settings

_END = 1 << 62


@dataclass(slots=True)
class Kept:
    """What pruning has left, by partition.

    Args:
        first_arrival: the lowest arrival number of a processed event; 0 where nothing was pruned.
        first_seq: the lowest outbox number; 0 where nothing was pruned.
        outbox_since: rows that were written after this moment are never pruned.
    """

    first_arrival: dict[int, int] = field(default_factory=dict)
    first_seq: dict[int, int] = field(default_factory=dict)
    outbox_since: datetime = datetime.max

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
    kept = Kept(outbox_since=snapshot.at - timedelta(days=settings.relay.outbox_retention_days))
    _check_arrivals(settings, snapshot, arrivals, kept)
    _check_outbox(settings, snapshot, outbox, kept)
    return kept


def _check_arrivals(settings: Settings, snapshot: Snapshot, check: Check, kept: Kept) -> None:
    dropped: dict[int, list[int]] = defaultdict(list)
    events = TopicNames(settings.installation.topic_prefix).events
    for partition, offset in snapshot.walk("dropped", {"events": events}):
        dropped[partition].append(offset)

    def report(partition: int, low: int, high: int, source_low: int, source_high: int) -> None:
        """Numbers are given in the order of the sources, so that it can be told which of them were set aside later."""
        sources = dropped[partition]
        explained = bisect_left(sources, source_high) - bisect_right(sources, source_low)
        if high - low + 1 > explained:
            check.fail(
                f"inbox partition {partition}: arrival numbers {low} to {high} are missing"
                + (f", and only {explained} of them were set aside after they had waited" if explained else ""),
                partition=partition,
                arrival_seq=low,
            )

    ends = {partition: rest for partition, *rest in snapshot.rows("arrival_ends")}
    for partition, position in snapshot.applied.items():
        lowest, lowest_of_all, highest, count, last_source = ends.pop(partition, (None, None, -1, 0, -1))
        check.looked_at += count
        kept.first_arrival[partition] = lowest or 0
        if lowest:
            check.leave_out("arrival numbers below the lowest processed event: pruned", lowest)
        elif lowest is None and lowest_of_all:
            check.leave_out("arrival numbers below the lowest parked event: pruned", lowest_of_all)
        if highest >= position.next_arrival_seq:
            check.fail(
                f"inbox partition {partition} has number {highest}, but the next to be given is"
                f" {position.next_arrival_seq}: sink_offsets was set back",
                partition=partition,
                arrival_seq=highest,
            )
        elif highest < position.next_arrival_seq - 1:
            report(partition, highest + 1, position.next_arrival_seq - 1, last_source, _END)
    for partition, before, number, source_before, source in snapshot.walk("arrival_gaps"):
        if before >= kept.first_arrival.get(partition, 0):
            report(partition, before + 1, number - 1, source_before, source)
    for partition in ends:
        check.fail(f"inbox partition {partition} has rows, and the sink never had that partition", partition=partition)
    for object_id, lowest, highest in snapshot.walk("scattered"):
        check.fail(
            f"events of object {object_id} lie in partitions {lowest} and {highest}: their order is lost",
            object_id=object_id,
        )


def _check_outbox(settings: Settings, snapshot: Snapshot, check: Check, kept: Kept) -> None:
    ends = {partition: rest for partition, *rest in snapshot.rows("outbox_ends")}
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
                + ("rows at its end are missing" if highest < position.next_outbox_seq else "sink_offsets was set back"),
                partition=partition,
                seq=min(highest + 1, position.next_outbox_seq),
            )
    for partition, before, number in snapshot.walk("outbox_gaps"):
        check.fail(
            f"outbox partition {partition}: rows {before + 1} to {number - 1} are missing, though later ones are there",
            partition=partition,
            seq=before + 1,
        )
    for partition in ends:
        check.fail(f"outbox partition {partition} has rows, and the sink never had that partition", partition=partition)
