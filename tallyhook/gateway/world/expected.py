"""Whether the database holds what the simulated world must have led to."""

from collections.abc import Iterator
from itertools import chain, islice

from tallyhook.gateway.world.compare_deposits import compare_deposits
from tallyhook.gateway.world.compare_records import compare_balances, compare_inbox, compare_transactions
from tallyhook.gateway.world.compare_withdrawals import compare_withdrawals
from tallyhook.gateway.world.ending import ExpectedEnd
from tallyhook.gateway.world.stored import Stored
from tallyhook.postgres import Connection

SENTENCES_MAX = 1_000


def differences(expected: ExpectedEnd, connection: Connection, schema: str) -> list[str]:
    """What the tables hold otherwise than expected, a sentence each; empty when all is as it must be.

    Everything is read from one snapshot. Only rows of this world are looked at: others may stand beside them. Rows of
    the outbox that were pruned already are missed, so this is to be asked within the outbox's retention.

    Args:
        expected: a world's `expected`, or its `expected_complete` after a backfill.
        connection: autocommit; nothing is written.
        schema: the installation's schema.

    Returns:
        At most 1,001 sentences, each with the id of what it speaks of and both values; the last one counts the rest.
    """
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        stored = Stored(connection, schema)
        found = _all(expected, stored)
        first = list(islice(found, SENTENCES_MAX))
        more = sum(1 for _ in found)
    return [*first, f"And {more} differences more."] if more else first


def _all(expected: ExpectedEnd, stored: Stored) -> Iterator[str]:
    return chain(
        compare_inbox(expected, stored),
        compare_deposits(expected, stored),
        compare_balances(expected, stored),
        compare_withdrawals(expected, stored),
        compare_transactions(expected, stored),
    )
