"""Waits until the stores have judged what was just posted."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psycopg

from tallyhook.errors import DatabaseUnavailable, SchemaMismatch
from tallyhook.operations.explain import Delivery, explain
from tallyhook.postgres import Connection
from tallyhook.settings import Installation

LOOK_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one event's new deliveries.

    Args:
        deliveries: those that were not there before, in the order of `explain`.
        missing: how many more were posted than have come.
    """

    event_id: str
    deliveries: tuple[Delivery, ...]
    missing: int

    @property
    def good(self) -> bool:
        """Whether all came and none was set aside."""
        return not self.missing and all(delivery.verdict != "quarantined" for delivery in self.deliveries)


class Awaiting:
    """Deliveries that come to one installation after this was made.

    Args:
        connection: in autocommit, so that each look sees what is new.
        event_ids: of what is going to be posted.

    Raises:
        DatabaseUnavailable, SchemaMismatch: there is nothing to look at; `wait` too.
    """

    def __init__(self, connection: Connection, installation: Installation, event_ids: Iterable[str]) -> None:
        self._connection, self._installation = connection, installation
        self._before = {event_id: {d.source for d in self._deliveries(event_id)} for event_id in event_ids}

    def wait(self, posted: Mapping[str, int], timeout_seconds: float) -> list[Judged]:
        """Looks until each event has as many new deliveries as were posted, at most so long."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            found = [self._judged(event_id, count) for event_id, count in posted.items()]
            if not any(one.missing for one in found) or time.monotonic() > deadline:
                return found
            time.sleep(LOOK_SECONDS)

    def _judged(self, event_id: str, posted: int) -> Judged:
        before = self._before[event_id]
        new = tuple(delivery for delivery in self._deliveries(event_id) if delivery.source not in before)
        return Judged(event_id, new, max(0, posted - len(new)))

    def _deliveries(self, event_id: str) -> list[Delivery]:
        schema = self._installation.schema_name
        try:
            found = explain(self._connection, schema, self._installation.topic_prefix, event_id, "en")
        except psycopg.errors.UndefinedTable:
            raise SchemaMismatch(
                f"schema {schema} has no tables: set TALLYHOOK_SCHEMA to the installation's, or run `tallyhook migrate`"
            ) from None
        except psycopg.OperationalError as failure:
            raise DatabaseUnavailable(f"PostgreSQL does not answer: {str(failure).strip()}") from failure
        return found.deliveries if found is not None else []
