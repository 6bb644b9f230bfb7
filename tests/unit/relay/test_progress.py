"""Kafka's progress against what the database remembers."""

from uuid import UUID, uuid4

import pytest

from sinks.relay.position import Position, decode
from sinks.relay.progress import check
from tallyhook.errors import OutboxRewound, PositionLost

TOPIC = "t.relay-progress"
ROW, OTHER = uuid4(), uuid4()


def test_a_position_is_read_as_it_was_written() -> None:
    """The record is small JSON that a person can read and write."""
    position = Position(7, UUID("8b9a1f5e-6d0c-4b8e-9a3d-2f1c0e5b7a66"))
    assert position.encode() == b'{"seq":7,"id":"8b9a1f5e-6d0c-4b8e-9a3d-2f1c0e5b7a66"}'
    assert decode(position.encode(), TOPIC, 0, 5) == position


@pytest.mark.parametrize("value", [None, b"", b"7", b"{}", b'{"seq":7}', b'{"seq":"7","id":"x"}', b"\xff"])
def test_what_no_relay_wrote_is_refused(value: bytes | None) -> None:
    """A foreign record names its place and is never taken for a position."""
    with pytest.raises(PositionLost, match=r"t\.relay-progress, partition 3, offset 12"):
        decode(value, TOPIC, 3, 12)


def test_a_negative_position_is_refused() -> None:
    """There is no row before the first."""
    with pytest.raises(PositionLost, match="names row -1"):
        decode(Position(-1, ROW).encode(), TOPIC, 0, 0)


@pytest.mark.parametrize(
    ("progress", "cursor"),
    [({}, -1), ({0: Position(5, ROW)}, 5), ({0: Position(5, ROW)}, 3), ({0: Position(5, ROW)}, -1)],
)
def test_a_cursor_may_lag(progress: dict[int, Position], cursor: int) -> None:
    """The cursor is a hint that follows the progress."""
    check(TOPIC, progress, {0: cursor}, {0: ROW})


@pytest.mark.parametrize("progress", [{}, {0: Position(5, ROW)}])
def test_progress_behind_the_cursor_lost_records(progress: dict[int, Position]) -> None:
    """Starting from it would send rows twice."""
    with pytest.raises(PositionLost, match="rows up to 6 were sent"):
        check(TOPIC, progress, {0: 6}, {0: ROW})


@pytest.mark.parametrize("ids", [{}, {0: OTHER}])
def test_a_row_that_is_gone_or_another_one_was_rewound(ids: dict[int, UUID]) -> None:
    """The database lost commits."""
    with pytest.raises(OutboxRewound, match="no longer holds row 5 with id"):
        check(TOPIC, {0: Position(5, ROW)}, {0: -1}, ids)
