"""Which of the rows that were made again are those that were sent, and which numbers the others get. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tallyhook.operations.rewound.sent import SentEffect


@dataclass(frozen=True, slots=True)
class RemadeRow:
    """A row of the outbox behind the last one that the database kept.

    Args:
        content: digest of the payload, as `SentEffect.content`.
        payload: of a balance entry; else None.
    """

    seq: int
    effect: str
    dedupe_key: str
    object_id: str
    causation_id: str
    version: str
    content: bytes
    payload: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A row that was made again and is not what was sent.

    Args:
        what: the members that differ, with both values.
    """

    sent: SentEffect
    what: str


@dataclass(frozen=True, slots=True)
class Matched:
    """One partition's rows held against what was sent.

    Args:
        kept_seq: the last row that the database kept; -1 for none.
        sent_seq: the last row that was sent.
        pairs: what was sent, with the row that is it.
        unsent: rows that were not sent, in their order.
        missing: what was sent and was not made again.
        differences: what was made again and is not the same.
    """

    partition: int
    kept_seq: int
    sent_seq: int
    pairs: Sequence[tuple[SentEffect, RemadeRow]]
    unsent: Sequence[RemadeRow]
    missing: Sequence[SentEffect] = ()
    differences: Sequence[Difference] = field(default_factory=tuple)

    @property
    def agrees(self) -> bool:
        """Whether everything that was sent is there again, as it was."""
        return not self.missing and not self.differences

    def new_numbers(self) -> dict[int, int]:
        """The rows whose number changes, old to new: sent ones as they were sent, the others behind them in order.

        Only for rows that agree. The numbers as a whole stay the same, so that the next one that the sink gives stays
        right.
        """
        numbers = {row.seq: sent.seq for sent, row in self.pairs}
        numbers |= {row.seq: self.sent_seq + 1 + place for place, row in enumerate(self.unsent)}
        return {old: new for old, new in numbers.items() if old != new}


def match(
    partition: int, kept_seq: int, sent_seq: int, sent: Mapping[int, SentEffect], rows: Sequence[RemadeRow]
) -> Matched:
    """Pairs rows with what was sent by dedupe key.

    Args:
        sent: by number; every number from `kept_seq` + 1 to `sent_seq` must be there.
        rows: every row behind `kept_seq`, in order.
    """
    left = {row.dedupe_key: row for row in rows}
    pairs: list[tuple[SentEffect, RemadeRow]] = []
    missing: list[SentEffect] = []
    differences: list[Difference] = []
    last: dict[str, int] = {}
    for seq in range(kept_seq + 1, sent_seq + 1):
        effect = sent[seq]
        row = left.pop(effect.dedupe_key, None)
        if row is None:
            missing.append(effect)
            continue
        what = _differences(effect, row)
        if row.seq < last.get(row.object_id, -1):
            what.append("it was made before an effect of the same object that was sent before it")
        last[row.object_id] = max(row.seq, last.get(row.object_id, -1))
        if what:
            differences.append(Difference(effect, "; ".join(what)))
        else:
            pairs.append((effect, row))
    unsent = sorted(left.values(), key=lambda row: row.seq)
    # An effect that was never sent cannot lie before one of its object that was: they go out in order.
    first_unsent: dict[str, RemadeRow] = {}
    for row in unsent:
        first_unsent.setdefault(row.object_id, row)
    for effect, row in pairs:
        earlier = first_unsent.get(row.object_id)
        if earlier is not None and earlier.seq < row.seq:
            differences.append(Difference(effect, f"before it stands {earlier.dedupe_key}, which was never sent"))
    return Matched(partition, kept_seq, sent_seq, pairs, unsent, missing, differences)


def _differences(sent: SentEffect, row: RemadeRow) -> list[str]:
    told = [
        f"{name} is {now}, sent was {then}"
        for name, then, now in (
            ("effect", sent.effect, row.effect),
            ("object", sent.object_id, row.object_id),
            ("version", sent.version, row.version),
            ("event", sent.causation_id, row.causation_id),
        )
        if then != now
    ]
    if sent.content != row.content:
        told.append("the payload is another")
    return told
