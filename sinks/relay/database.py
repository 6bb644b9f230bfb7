"""The relay's connections to PostgreSQL: whatever a statement fails of, it is tried again and said so."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tallyhook.errors import DatabaseUnavailable
from tallyhook.postgres import Connection, connect, words
from tallyhook.settings import DatabaseSettings

STATEMENT_SECONDS = 10
"""Bound of one statement: none of the relay's takes a hundredth of it in good health."""


@contextmanager
def answering(purpose: str) -> Iterator[None]:
    """Turns whatever PostgreSQL refuses within the block into DatabaseUnavailable, which is waited out.

    A relay that only reads, and writes nothing but its lease, has no statement that a row could be at fault for.
    """
    try:
        yield
    except psycopg.Error as failure:
        raise DatabaseUnavailable(f"PostgreSQL, {purpose}: {words(failure)}") from failure


def open_connection(database: DatabaseSettings) -> Connection:
    """A connection whose statements are bounded; raises DatabaseUnavailable."""
    connection = connect(database, "relay")
    try:
        with answering("preparing a connection"):
            connection.execute(f"SET statement_timeout = '{STATEMENT_SECONDS}s'")
            # Every query is a look-up by key; a plan made while the outbox was empty would scan all of it later.
            connection.execute("SET enable_seqscan = off")
            # A relay that froze between two statements of a transaction would hold its rows for ever.
            connection.execute("SET idle_in_transaction_session_timeout = '5s'")
    except DatabaseUnavailable:
        connection.close()
        raise
    return connection
