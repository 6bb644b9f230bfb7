"""When a server answers: each attempt is short, the whole wait is bounded, and a dead server ends it at once."""

import logging
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from psycopg import sql

from tallyhook.errors import LocalStackError

POLL_SECONDS = 0.05
ATTEMPT_SECONDS = 2.0
SILENT = logging.getLogger("tallyhook.local.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


def await_answer(attempt: Callable[[], str | None], seconds: float, alive: Callable[[], bool]) -> str | None:
    """Repeats `attempt` until it returns None (it answers); returns the last reason when time or life is over."""
    deadline = time.monotonic() + seconds
    while True:
        reason = attempt()
        if reason is None or time.monotonic() >= deadline or not alive():
            return reason
        time.sleep(POLL_SECONDS)


def kafka_answers(client_config: Mapping[str, Any]) -> str | None:
    """None when a broker that takes clients answers, else the reason."""
    reasons: list[str] = []
    config: dict[str, Any] = {
        **client_config,
        "log_level": 0,
        "error_cb": lambda error: reasons.append(error.str()),
        "socket.timeout.ms": int(ATTEMPT_SECONDS * 1000),
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 200,
    }
    try:
        client = AdminClient(config, logger=SILENT)
        # A broker that is still fenced (it restarts, and its old registration has not expired) is not listed.
        return None if client.list_topics(timeout=ATTEMPT_SECONDS).brokers else "no broker is listed yet"
    except KafkaException as failure:
        error = failure.args[0] if failure.args else failure
        text = error.str() if isinstance(error, KafkaError) else str(error)
        return reasons[-1] if reasons else text


def port_answers(port: int) -> str | None:
    """None when somebody accepts connections on that port of 127.0.0.1; cheap, to be asked before the protocol."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=ATTEMPT_SECONDS).close()
    except OSError as failure:
        return f"127.0.0.1:{port} does not accept connections ({failure})"
    return None


def postgres_answers(url: str, password: str | None = None) -> str | None:
    """None when a query is answered, else the reason."""
    try:
        with psycopg.connect(
            url, password=password, connect_timeout=int(ATTEMPT_SECONDS), autocommit=True
        ) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error as failure:
        return str(failure).strip() or type(failure).__name__
    return None


def create_database_once(maintenance_url: str, name: str) -> None:
    """Creates a database if there is none of that name. Raises LocalStackError."""
    try:
        with psycopg.connect(maintenance_url, autocommit=True, connect_timeout=10) as connection:
            found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
            if found is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.Error as failure:
        raise LocalStackError(f"database {name} could not be created: {str(failure).strip()}") from failure
