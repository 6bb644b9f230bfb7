"""A warehouse that hands goods out and holds them back: how a service consumes effects.

It keeps the two rules of `docs/effects.md` and notes each `ce_id` in the transaction in which it acts. SQLite stands
for whatever database the service has.

    python examples/consumer/warehouse.py warehouse.sqlite 127.0.0.1:9092
"""

import json
import sqlite3
import sys
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer

GOODS = ("release_goods", "hold_goods")
STATUS = ("show_late_slip", "fail_order", "show_pending_review", "update_order_status")

TABLES = """
CREATE TABLE IF NOT EXISTS done (ce_id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS holds (subject TEXT PRIMARY KEY, version INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS shown (subject TEXT PRIMARY KEY, version INTEGER NOT NULL, effect TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS goods (subject TEXT NOT NULL, order_id TEXT NOT NULL, movement TEXT NOT NULL);
"""


class Warehouse:
    """Acts on effects, each once, whatever order their topics are read in."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        database.executescript(TABLES)

    def take(self, headers: Mapping[str, str], payload: Mapping[str, Any]) -> bool:
        """Acts on one effect; says whether it did.

        Args:
            headers: the record's `ce_...` headers.
            payload: the effect's members.
        """
        effect, subject, version = headers["ce_type"], headers["ce_subject"], int(headers["ce_version"])
        with self._database as transaction:
            noted = transaction.execute("INSERT OR IGNORE INTO done VALUES (?)", (headers["ce_id"],))
            if noted.rowcount == 0:
                return False  # acted on before: the offset was not committed, or the topic was read again
            if effect in GOODS:
                return self._move_goods(effect, subject, version, str(payload["order_id"]))
            if effect in STATUS:
                return self._show(effect, subject, version)
        return False  # an effect of a newer version of the pipeline

    def _move_goods(self, effect: str, subject: str, version: int, order_id: str) -> bool:
        if effect == "hold_goods":
            self._database.execute("INSERT OR IGNORE INTO holds VALUES (?, ?)", (subject, version))
        else:
            # Rule 1: the reversal is known already, so the older release is not acted on.
            known = self._database.execute("SELECT version FROM holds WHERE subject = ?", (subject,)).fetchone()
            if known is not None and version < known[0]:
                return False
        self._database.execute("INSERT INTO goods VALUES (?, ?, ?)", (subject, order_id, effect))
        return True

    def _show(self, effect: str, subject: str, version: int) -> bool:
        # Rule 2: the newest of a subject wins. By subject, because one order can have several deposits.
        written = self._database.execute(
            "INSERT INTO shown VALUES (?, ?, ?) ON CONFLICT (subject) DO UPDATE"
            " SET version = excluded.version, effect = excluded.effect WHERE shown.version < excluded.version",
            (subject, version, effect),
        )
        return written.rowcount == 1


def run(warehouse: Warehouse, bootstrap: str, prefix: str = "tallyhook") -> None:
    """Reads every effect topic until the process is ended."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "warehouse",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",  # without it, effects of aborted transactions are seen as well
        }
    )
    consumer.subscribe([f"{prefix}.effects.{name.replace('_', '-')}" for name in (*GOODS, *STATUS)])
    try:
        while True:
            message = consumer.poll(1.0)
            if message is None:
                continue
            if (error := message.error()) is not None:
                raise RuntimeError(f"reading effects: {error.str()}")
            headers = {
                name: value.decode()
                for name, value in dict(message.headers() or ()).items()
                if isinstance(value, bytes)
            }
            warehouse.take(headers, json.loads(message.value() or b""))
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    run(Warehouse(sqlite3.connect(sys.argv[1])), sys.argv[2])
