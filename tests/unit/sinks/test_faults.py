"""Whose fault a failure of the database is."""

import psycopg
import pytest

from sinks.errors import CountDiffers
from sinks.faults import is_event_fault, passing_cause

ERRORS = psycopg.errors


@pytest.mark.parametrize(
    ("kind", "fault", "cause"),
    [
        (ERRORS.NumericValueOutOfRange, True, None),
        (ERRORS.CheckViolation, True, None),
        (ERRORS.ProgramLimitExceeded, True, None),
        (ERRORS.UniqueViolation, True, "conflict"),
        (ERRORS.DeadlockDetected, False, "deadlock"),
        (ERRORS.SerializationFailure, False, "serialisation"),
        (ERRORS.ReadOnlySqlTransaction, False, None),
        (ERRORS.DiskFull, False, None),
        (ERRORS.AdminShutdown, False, None),
        (ERRORS.UndefinedColumn, False, None),
        (ERRORS.TooManyConnections, False, None),
        (psycopg.OperationalError, False, None),
    ],
)
def test_only_three_classes_are_an_events_fault(kind: type[psycopg.Error], fault: bool, cause: str | None) -> None:
    """Data, integrity and limits; whatever is ours or the machine's quarantines nothing."""
    assert (is_event_fault(kind("x")), passing_cause(kind("x"))) == (fault, cause)


def test_rows_that_moved_are_decided_anew() -> None:
    """Somebody else's commit was in the way."""
    assert passing_cause(CountDiffers("write_deposits", 2, 1)) == "conflict"
    assert passing_cause(RuntimeError()) is None
