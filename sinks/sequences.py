"""Numbers of the gateway's sequence that were seen: written to the head and the gaps of their merchant.

Everything here runs in the keeper's transaction. To see a number twice changes nothing, so that a source may be read
again after a crash.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sinks.domain.sequences import Head, Merged, Span, merge
from tallyhook.postgres import Connection, Queries


@dataclass(frozen=True, slots=True)
class Seen:
    """Numbers of one merchant that a source brought.

    Args:
        numbers: in the order of their receipt.
        since, until: when the first and the last of them was received.
    """

    merchant: str
    numbers: Sequence[int]
    since: datetime
    until: datetime


class Sequences:
    """The tables `sequence_heads` and `sequence_gaps` of one installation.

    Args:
        connection: in a transaction that holds the keeper's row.
        schema: the installation's schema.
    """

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._queries = Queries("sinks", "sql/sequences.sql", schema)

    def add(self, seen: Iterable[Seen]) -> None:
        """Takes the numbers in; merchants in order, so that whoever else writes them meets the same order."""
        by_merchant: dict[str, list[Seen]] = defaultdict(list)
        for part in seen:
            by_merchant[part.merchant].append(part)
        for merchant, parts in sorted(by_merchant.items()):
            parts.sort(key=lambda part: part.since)
            numbers = [number for part in parts for number in part.numbers]
            self._add(merchant, numbers, max(part.until for part in parts))

    def _add(self, merchant: str, numbers: Sequence[int], until: datetime) -> None:
        row = self._run("find_head", (merchant,)).fetchone()
        # The first number ever seen is where the sequence begins for us: earlier ones were not ours to take.
        head = Head(numbers[0], numbers[0]) if row is None else Head(*row)
        distinct = sorted(set(numbers))
        known = [number for number in distinct if head.first_seen <= number <= head.highest_seen]
        touched: list[Span] = []
        if row is not None and known:
            found = self._run("find_touched", {"merchant": merchant, "numbers": known}).fetchall()
            touched = [Span(*gap) for gap in found]
        merged = merge(head, distinct, touched)
        self._write_gaps(merchant, merged, until)
        if row is None or merged.head != head:
            ends = {"first": merged.head.first_seen, "highest": merged.head.highest_seen}
            self._run("save_head", {"merchant": merchant} | ends)

    def _write_gaps(self, merchant: str, merged: Merged, until: datetime) -> None:
        before = [(gap, left[0]) for gap, left in merged.cut if left and left[0].first == gap.first]
        behind = [(gap, span) for gap, left in merged.cut for span in left if span.first != gap.first]
        closed = [gap for gap, left in merged.cut if not left or left[0].first != gap.first]
        if behind:
            # First of all, because it copies the history of rows that are changed next.
            self._write("split", merchant, [span for _, span in behind], origins=[gap.first for gap, _ in behind])
        if before:
            self._write("shorten", merchant, [span for _, span in before])
        if closed:
            self._run("close", {"merchant": merchant, "firsts": [gap.first for gap in closed]})
        if merged.opened:
            self._write("open", merchant, merged.opened, opened_at=until)

    def _write(self, name: str, merchant: str, spans: Sequence[Span], **more: object) -> None:
        firsts, lasts = [span.first for span in spans], [span.last for span in spans]
        self._run(name, {"merchant": merchant, "firsts": firsts, "lasts": lasts} | more)

    def _run(self, name: str, parameters: Any) -> Any:
        return self._connection.execute(self._queries[name], parameters)
