"""The outbox of a rewound database, seen in one transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg

from schemas.effects import BALANCE_ENTRY
from tallyhook.errors import DatabaseUnavailable, TallyhookError
from tallyhook.operations.rewound.matching import RemadeRow
from tallyhook.operations.rewound.sent import SentEffect, digest
from tallyhook.postgres import Connection, Queries

ROWS_MAX = 500_000
"""Most rows that are held against what was sent: far more than a failover loses, and 300 MB of memory."""

LOCK_SECONDS = 5.0


class TooMuchLost(TallyhookError):
    """More was lost than can be put right in this way; nothing was changed."""


class Outbox:
    """Reads and numbers the rows. Raises psycopg.Error, which the caller turns into words.

    Args:
        connection: autocommit; a transaction must have been begun with `begin`.
    """

    def __init__(self, connection: Connection, schema: str, lock_key: int) -> None:
        self._connection, self._lock_key = connection, lock_key
        self._queries = Queries("tallyhook.operations", "rewound.sql", schema)

    def begin(self, *, mend: bool) -> None:
        """Opens the transaction; one that mends keeps others that mend out."""
        self._connection.execute(self._queries["begin_mend" if mend else "begin_look"])
        if mend:
            self._connection.execute(self._queries["wait_at_most"], (f"{int(LOCK_SECONDS * 1000)}ms",))
            self._connection.execute(self._queries["one_at_a_time"], (self._lock_key,))

    def end(self, *, commit: bool) -> None:
        """Closes it."""
        if not self._connection.broken:
            self._connection.execute("COMMIT" if commit else "ROLLBACK")

    def installed_topics(self) -> dict[str, tuple[str, int]]:
        """Id and partition count of each topic as `tallyhook topics apply` recorded them."""
        return {topic: (topic_id, partitions) for topic, topic_id, partitions in self._all("installed_topics")}

    def row_ids(self, seqs: Mapping[int, int]) -> dict[int, UUID]:
        """The id of the row with this seq, by partition; absent where there is no such row."""
        return dict(self._all("row_ids", {"partitions": list(seqs), "seqs": list(seqs.values())}))

    def last_kept(self, partition: int, sent: Mapping[int, SentEffect], first: int, last: int) -> int | None:
        """The newest row from `first` to `last` that is the very one that was sent; None where there is none."""
        rows = self._all("kept", {"partition": partition, "first": first, "last": last})
        kept = [
            seq
            for seq, dedupe_key, created_at in rows
            if (sent[seq].dedupe_key, sent[seq].written_at) == (dedupe_key, created_at)
        ]
        return max(kept, default=None)

    def behind(self, partition: int, seq: int) -> tuple[list[RemadeRow], datetime | None]:
        """Every row behind a number, in order, and when the first of them was made; raises TooMuchLost."""
        place = {"partition": partition, "seq": seq}
        rows = self._all("count_behind", place)[0][0]
        if rows > ROWS_MAX:
            raise TooMuchLost(
                f"outbox partition {partition} has {rows} rows behind row {seq}, the last one that the database kept;"
                f" at most {ROWS_MAX} can be held against what was sent. Restore a newer copy of the database"
            )
        found, made_at = [], None
        for number, effect, dedupe_key, object_id, causation_id, version, payload, created_at in self._all(
            "behind", place
        ):
            made_at = created_at if made_at is None else min(made_at, created_at)
            kept = payload if effect == BALANCE_ENTRY else None
            content = digest(effect, payload)
            found.append(RemadeRow(number, effect, dedupe_key, object_id, causation_id, version, content, kept))
        return found, made_at

    def events(self, event_ids: Sequence[str]) -> dict[str, tuple[bool, str | None, bool]]:
        """By event: whether the inbox has it, what it waits for, whether it was set aside."""
        return {event: (known, waits, aside) for event, known, waits, aside in self._all("events", (list(event_ids),))}

    def shards(self) -> int:
        """How many relays share the partitions."""
        rows = self._all("shards")
        return int(rows[0][0]) if rows else 1

    def leased(self) -> set[int]:
        """Partitions that a relay holds now."""
        return {row[0] for row in self._all("leases")}

    def entries_elsewhere(
        self, rewound: Sequence[int], since: datetime, users: Sequence[str]
    ) -> list[tuple[int, int, str, str]]:
        """Partition, number, user and payload of entries in other partitions, in the order in which they were made."""
        return self._all("entries_elsewhere", {"rewound": list(rewound), "since": since, "users": list(users)})

    def balances(self, users: Sequence[str]) -> dict[str, int]:
        """What users have now."""
        return dict(self._all("balances", (list(users),)))

    def renumber(self, partition: int, numbers: Mapping[int, int]) -> None:
        """Gives rows other numbers, old to new."""
        if numbers:
            place = {"partition": partition, "seqs": list(numbers)}
            self._change("step_aside", len(numbers), place)
            numbered = {"partition": partition, "old": list(numbers), "new": list(numbers.values())}
            self._change("renumber", len(numbers), numbered)

    def identify(self, partition: int, seq: int, row_id: UUID) -> None:
        """Gives the row that was sent last the id that the relay's progress names."""
        self._change("identify", 1, {"partition": partition, "seq": seq, "id": row_id})

    def announce(self, payloads: Mapping[tuple[int, int], str]) -> None:
        """Sets what balance entries say, by partition and number."""
        if payloads:
            columns = {
                "partitions": [partition for partition, _ in payloads],
                "seqs": [seq for _, seq in payloads],
                "payloads": list(payloads.values()),
            }
            self._change("announce", len(payloads), columns)

    def _all(self, name: str, parameters: Any = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(self._queries[name], parameters).fetchall()

    def _change(self, name: str, expected: int, parameters: Mapping[str, object]) -> None:
        changed = self._connection.execute(self._queries[name], parameters).rowcount
        if changed != expected:
            raise TooMuchLost(
                f"the outbox changed meanwhile ({name}: {changed} rows instead of {expected}): nothing was changed;"
                " try again"
            )


def in_words(failure: psycopg.Error, schema: str) -> TallyhookError:
    """What a statement failed of, and what to do."""
    if isinstance(failure, psycopg.errors.InsufficientPrivilege):
        return DatabaseUnavailable(
            f"this role may not change {schema}.pg_outbox, as sinks and relays need not: run the command as the role"
            " that runs `tallyhook migrate`. Nothing was changed"
        )
    if isinstance(failure, (psycopg.errors.LockNotAvailable, psycopg.errors.SerializationFailure)):
        return DatabaseUnavailable("another session changes the outbox: nothing was changed; try again")
    return DatabaseUnavailable(f"PostgreSQL: {str(failure).strip()}; nothing was changed, unless it was the commit")
