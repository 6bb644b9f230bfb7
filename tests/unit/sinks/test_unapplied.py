"""When a loop has recovered from a batch that failed."""

from dataclasses import dataclass
from typing import cast

from confluent_kafka import Message

from sinks.unapplied import Unapplied


@dataclass
class Place:
    """Where a record stands: all that is asked of it."""

    number: int
    at: int

    def partition(self) -> int:
        """The record's partition."""
        return self.number

    def offset(self) -> int:
        """The record's offset."""
        return self.at


def taken(*places: tuple[int, int]) -> Unapplied:
    """After records at these partitions and offsets were given to a batch."""
    made = Unapplied()
    made.take([cast("Message", Place(*place)) for place in places])
    return made


def test_nothing_is_unapplied_at_first() -> None:
    """And a batch of nothing changes nothing."""
    assert not Unapplied()
    assert not taken()


def test_it_lasts_until_every_position_has_passed_its_end() -> None:
    """Some of the records are not all, and those of one partition are not those of the other."""
    made = taken((0, 7), (0, 9), (1, 3))
    made.pass_by({0: 9, 1: 3})
    assert made
    made.pass_by({0: 10, 1: 3})
    assert made
    made.pass_by({1: 4})
    assert not made


def test_a_smaller_batch_does_not_end_it() -> None:
    """A second try may take fewer records: the end of the first one counts."""
    made = taken((0, 99))
    made.take([cast("Message", Place(0, 5))])
    made.pass_by({0: 6})
    assert made


def test_what_others_own_is_forgotten() -> None:
    """Only those partitions."""
    made = taken((0, 1), (1, 1))
    made.forget({0})
    assert made
    made.forget({1, 2})
    assert not made


def test_where_nothing_waits_nothing_is_unapplied() -> None:
    """A partition with records that wait keeps it; one without, or which is not measured, does not."""
    made = taken((0, 1), (1, 1), (2, 1))
    made.keep_where_records_wait({0: 2, 1: 0})
    assert made
    made.keep_where_records_wait({0: 0})
    assert not made
