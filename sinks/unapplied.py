"""What was given to a batch and is not applied yet: as long as there is some, the loop has not recovered."""

from collections.abc import Collection, Mapping, Sequence

from confluent_kafka import Message


class Unapplied:
    """The end of the last batch by partition, until the stored position has passed it. True while any is left."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._ends)

    def take(self, messages: Sequence[Message]) -> None:
        """These records are about to be applied."""
        for message in messages:
            partition, end = message.partition() or 0, (message.offset() or 0) + 1
            self._ends[partition] = max(end, self._ends.get(partition, 0))

    def pass_by(self, positions: Mapping[int, int]) -> None:
        """Forgets what lies below the stored positions: the next offset by partition."""
        self._ends = {number: end for number, end in self._ends.items() if positions.get(number, 0) < end}

    def forget(self, partitions: Collection[int]) -> None:
        """These are others' to apply from now on."""
        self._ends = {number: end for number, end in self._ends.items() if number not in partitions}

    def keep_where_records_wait(self, lags: Mapping[int, int]) -> None:
        """Forgets the partitions where nothing waits any more, or which are not this process's: records by partition.

        Without it a batch whose records the topic has lost would be waited for without end.
        """
        self._ends = {number: end for number, end in self._ends.items() if lags.get(number, 0) > 0}
