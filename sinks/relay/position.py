"""Where a partition of the outbox stands: the last row that was sent, as the progress topic keeps it."""

from uuid import UUID

import msgspec

from tallyhook.errors import PositionLost


class Position(msgspec.Struct, frozen=True, gc=False):
    """The last row of one partition that was sent.

    Args:
        seq: its number within the partition, 0 or more.
        id: its own id; a row that takes the same number after a lost commit has another one.
    """

    seq: int
    id: UUID

    def encode(self) -> bytes:
        """As the value of a progress record: `{"seq":7,"id":"..."}`."""
        return msgspec.json.encode(self)


_DECODER = msgspec.json.Decoder(Position)


def decode(value: bytes | None, topic: str, partition: int, offset: int) -> Position:
    """Reads a progress record; raises PositionLost when somebody else wrote it."""
    try:
        position = _DECODER.decode(value or b"")
    except msgspec.MsgspecError as failure:
        raise PositionLost(
            f"{topic}, partition {partition}, offset {offset} holds no progress of a relay ({failure}): only relays may"
            " write there. Take the right to write from whoever else has it, and restore the topic"
        ) from failure
    if position.seq < 0:
        raise PositionLost(f"{topic}, partition {partition}, offset {offset} names row {position.seq}: there is none")
    return position
