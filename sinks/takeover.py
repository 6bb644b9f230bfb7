"""Whether a session at the database was lost because another worker took the partitions over.

A claimer that waits too long for a frozen owner ends the owner's session. The owner learns of it as a lost connection;
only the fence's rows tell it from a database that was restarted.
"""

import psycopg

from sinks.fence import Fence
from tallyhook import logs
from tallyhook.errors import DatabaseUnavailable
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings

_log = logs.logger(__name__)


def is_session_ended(connection: Connection | None, failure: Exception) -> bool:
    """Whether the failure is the database's and means that the session is gone, and not just a statement of it."""
    if connection is None or not isinstance(failure, psycopg.Error):
        return False
    return connection.broken or isinstance(failure, psycopg.errors.AdminShutdown)


def epochs_since(database: DatabaseSettings, former: Fence) -> dict[int, str]:
    """The partitions of a fence that others claimed since, each as `epoch held -> epoch stored`.

    Empty when none was, and when the database does not answer, which whoever connects next finds out as well.
    """
    if not former.positions:
        return {}
    try:
        with connect(database, "sink") as connection:
            claimed = former.claimed_since(connection)
    except (psycopg.Error, DatabaseUnavailable) as failure:
        _log.debug("epochs not read", topic=former.topic, error=type(failure).__name__)
        return {}
    return {partition: f"{mine} -> {stored}" for partition, (mine, stored) in claimed.items()}
