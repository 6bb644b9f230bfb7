"""What balance entries must say once some of them were sent with the balances of the lost history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from schemas.effects import BalanceEntry
from sinks.relay.position import Position
from tallyhook.errors import TallyhookError
from tallyhook.operations.rewound import announced
from tallyhook.operations.rewound.matching import Matched
from tallyhook.operations.rewound.outbox import Outbox


class RelayWorks(TallyhookError):
    """A relay sends rows that would have to be changed; nothing was changed."""


@dataclass
class _User:
    """What one user's entries say since the loss."""

    sent: list[tuple[int, int]] = field(default_factory=list)
    unsent: list[tuple[tuple[int, int], BalanceEntry]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Announcements:
    """Payloads of balance entries that change, by partition and new number.

    Args:
        as_sent: those that take what was sent.
        anew: those that were not sent yet and follow from it.
        unjoined: users whose steps cannot be joined; the audit's check `ledger` will name them.
    """

    as_sent: Mapping[tuple[int, int], str] = field(default_factory=dict)
    anew: Mapping[tuple[int, int], str] = field(default_factory=dict)
    unjoined: Sequence[str] = ()


def announcements(
    outbox: Outbox, matched: Sequence[Matched], progress: Mapping[int, Position], since: datetime | None
) -> Announcements:
    """What has to change so that the outbox says what was sent, and the rest goes on from there.

    Args:
        matched: the rewound partitions, all of which agree.
        progress: the last row sent of every partition.
        since: when the first row was made again; None where nothing was.

    Raises:
        RelayWorks: an entry of another partition must change, and the relay of that partition may be sending it.
    """
    as_sent: dict[tuple[int, int], str] = {}
    affected: set[str] = set()
    for one in matched:
        for effect, row in one.pairs:
            if effect.payload is None or row.payload is None:
                continue
            if msgspec.json.decode(effect.payload) != msgspec.json.decode(row.payload):
                as_sent[one.partition, effect.seq] = effect.payload
                affected.add(_entry(effect.payload).user_id)
    if not affected or since is None:
        return Announcements()
    users = _gather(outbox, matched, progress, since, affected)
    balances = outbox.balances(sorted(users))
    anew, unjoined = {}, []
    for user_id, user in sorted(users.items()):
        amounts = [entry.amount_minor for _, entry in user.unsent]
        after = announced.fit(balances.get(user_id, 0), user.sent, amounts)
        if after is None:
            unjoined.append(user_id)
            continue
        for (place, entry), balance in zip(user.unsent, after, strict=True):
            if entry.balance_after_minor != balance:
                changed = msgspec.structs.replace(entry, balance_after_minor=balance)
                anew[place] = msgspec.json.encode(changed).decode()
    _refuse_while_sending(outbox, matched, anew)
    return Announcements(as_sent, anew, unjoined)


def _gather(
    outbox: Outbox, matched: Sequence[Matched], progress: Mapping[int, Position], since: datetime, affected: set[str]
) -> dict[str, _User]:
    users = {user_id: _User() for user_id in affected}
    for one in matched:
        for effect, _ in one.pairs:
            if effect.payload is not None and (then := _entry(effect.payload)).user_id in users:
                users[then.user_id].sent.append((then.amount_minor, then.balance_after_minor))
        for place, row in enumerate(one.unsent):
            if row.payload is not None and (now := _entry(row.payload)).user_id in users:
                users[now.user_id].unsent.append(((one.partition, one.sent_seq + 1 + place), now))
    rewound = [one.partition for one in matched]
    for partition, seq, user_id, payload in outbox.entries_elsewhere(rewound, since, sorted(affected)):
        entry = _entry(payload)
        if partition in progress and seq <= progress[partition].seq:
            users[user_id].sent.append((entry.amount_minor, entry.balance_after_minor))
        else:
            users[user_id].unsent.append(((partition, seq), entry))
    return users


def _refuse_while_sending(outbox: Outbox, matched: Sequence[Matched], anew: Mapping[tuple[int, int], str]) -> None:
    """The relay of a rewound partition's shard stands still; another one may be sending the very row."""
    shards = outbox.shards()
    stopped = {one.partition % shards for one in matched}
    elsewhere = sorted({partition for partition, _ in anew if partition % shards not in stopped})
    if elsewhere and outbox.leased() & set(elsewhere):
        raise RelayWorks(
            f"balance entries of the partitions {elsewhere} must announce other balances, and a relay has these"
            " partitions: stop all relays, then try again. Nothing was changed"
        )


def _entry(payload: str) -> BalanceEntry:
    return msgspec.json.decode(payload, type=BalanceEntry)
