"""How many rows of each partition go into the next transaction, and in which portions they are read. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Range:
    """Rows of one partition: those after `after`, up to and with `upto`."""

    partition: int
    after: int
    upto: int

    @property
    def rows(self) -> int:
        """How many rows it names."""
        return self.upto - self.after


def allot(sent: Mapping[int, int], heads: Mapping[int, int], most_rows: int) -> list[Range]:
    """The rows that go next: an equal share for each partition, and what some leave over for the others.

    Args:
        sent: the last seq that was sent, by partition; -1 where nothing was.
        heads: the newest seq, by partition; absent where there are no rows.
        most_rows: bound of the sum; but each partition that waits gets a row, so that none starves.
    """
    waiting = sorted(
        (heads[partition] - seq, partition) for partition, seq in sent.items() if heads.get(partition, -1) > seq
    )
    ranges, left = [], most_rows
    for index, (rows, partition) in enumerate(waiting):
        share = min(rows, max(1, left // (len(waiting) - index)))
        left -= share
        ranges.append(Range(partition, sent[partition], sent[partition] + share))
    return ranges


def portions(ranges: Sequence[Range], most_rows: int) -> Iterator[list[Range]]:
    """Cuts ranges into portions of at most `most_rows`, so that no read has to hold a whole transaction in memory."""
    portion: list[Range] = []
    room = most_rows
    for wanted in ranges:
        after = wanted.after
        while after < wanted.upto:
            upto = min(wanted.upto, after + room)
            portion.append(Range(wanted.partition, after, upto))
            room -= upto - after
            after = upto
            if room == 0:
                yield portion
                portion, room = [], most_rows
    if portion:
        yield portion
