"""Whose fault a failure of the database is: the event's, a passing conflict, or ours and the machine's."""

import psycopg

from sinks.errors import CountDiffers

_EVENT_CLASSES = ("22", "23", "54")
"""Data exception, integrity constraint violation, program limit exceeded (PostgreSQL, appendix A)."""

_PASSING = {"40001": "serialisation", "40P01": "deadlock", "23505": "conflict"}

_NUMBERING = frozenset({"pg_outbox_pkey", "pg_webhook_inbox_arrival_uk", "sink_offsets_pkey"})


def is_event_fault(failure: psycopg.Error) -> bool:
    """Whether a value of an event was refused; everything else is not the event's fault and quarantines nothing."""
    return failure.sqlstate is not None and failure.sqlstate.startswith(_EVENT_CLASSES)


def numbers_taken(failure: psycopg.Error) -> bool:
    """Whether a number that only the fence gives out was used already: our own books are wrong."""
    return failure.sqlstate == "23505" and failure.diag.constraint_name in _NUMBERING


def passing_cause(failure: BaseException) -> str | None:
    """The cause, when deciding the batch anew may help: somebody else's commit was in its way."""
    if isinstance(failure, CountDiffers):
        return "conflict"
    if isinstance(failure, psycopg.Error) and failure.sqlstate is not None and not numbers_taken(failure):
        return _PASSING.get(failure.sqlstate)
    return None


def what_was_refused(failure: psycopg.Error) -> str:
    """The database's words, without the row's values: bodies and balances stay out of logs and details."""
    diag = failure.diag
    where = ", ".join(
        f"{name} {value}"
        for name, value in (
            ("table", diag.table_name),
            ("column", diag.column_name),
            ("constraint", diag.constraint_name),
        )
        if value
    )
    return f"SQLSTATE {failure.sqlstate}: {diag.message_primary or failure}" + (f" ({where})" if where else "")
