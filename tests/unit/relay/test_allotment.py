"""The next transaction's rows: fair, bounded, without holes."""

from hypothesis import given
from hypothesis import strategies as st

from sinks.relay.allotment import Range, allot, portions

partition_numbers = st.integers(0, 30)
backlogs = st.dictionaries(partition_numbers, st.tuples(st.integers(-1, 50), st.integers(0, 3000)), max_size=12)


@given(backlogs, st.integers(1, 2000))
def test_each_waiting_partition_gets_a_share(backlog: dict[int, tuple[int, int]], most_rows: int) -> None:
    """Nobody starves, nobody gets more than waits, the sum is bounded, and the room is used where rows wait for it."""
    sent = {partition: seq for partition, (seq, _) in backlog.items()}
    heads = {partition: seq + waiting for partition, (seq, waiting) in backlog.items() if seq + waiting >= 0}
    ranges = allot(sent, heads, most_rows)
    waiting = {partition: rows for partition, (_, rows) in backlog.items() if rows > 0}
    assert {one.partition for one in ranges} == set(waiting)
    assert all(one.after == sent[one.partition] for one in ranges)
    assert all(1 <= one.rows <= waiting[one.partition] for one in ranges)
    assert sum(one.rows for one in ranges) <= max(most_rows, len(waiting))
    assert sum(one.rows for one in ranges) >= min(most_rows, sum(waiting.values()))


def test_a_lonely_backlog_gets_the_room_that_others_leave() -> None:
    """One busy partition is not held to an eighth of a transaction."""
    sent = dict.fromkeys(range(8), -1)
    heads = {0: 9, 3: 100_000}
    assert allot(sent, heads, 1000) == [Range(0, -1, 9), Range(3, -1, 989)]


def test_nothing_waits() -> None:
    """Partitions without rows, and those that are done, get nothing."""
    assert allot({0: -1, 1: 7}, {1: 7}, 1000) == []


@given(st.lists(st.tuples(st.integers(-1, 100), st.integers(1, 700)), max_size=8), st.integers(1, 300))
def test_portions_are_the_same_rows_in_order(spans: list[tuple[int, int]], most_rows: int) -> None:
    """Cutting loses no row and doubles none, and no portion is larger than allowed."""
    ranges = [Range(partition, after, after + rows) for partition, (after, rows) in enumerate(spans)]
    cut = list(portions(ranges, most_rows))
    assert all(1 <= sum(one.rows for one in portion) <= most_rows for portion in cut)
    assert _rows([one for portion in cut for one in portion]) == _rows(ranges)


def _rows(ranges: list[Range]) -> list[tuple[int, int]]:
    return [(one.partition, seq) for one in ranges for seq in range(one.after + 1, one.upto + 1)]
