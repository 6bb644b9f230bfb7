"""A wallet that follows withdrawals: what it locked for a user is released, refunded or taken for good, each once.

It keeps the two rules of `docs/effects.md` and notes each `ce_id` in the transaction in which it acts. SQLite stands
for whatever database the service has.

    python examples/consumer/wallet.py wallet.sqlite 127.0.0.1:9092
"""

import json
import sqlite3
import sys
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer

MONEY = ("refund_unfilled", "release_user_lock", "compensate_reversed_fill")
CLOSED = ("close_withdrawal",)
STATUS = ("show_progress", "update_local_status")

TABLES = """
CREATE TABLE IF NOT EXISTS done (ce_id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS shown (subject TEXT PRIMARY KEY, version INTEGER NOT NULL, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS closed (subject TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS movements (subject TEXT NOT NULL, movement TEXT NOT NULL, amount_minor INTEGER);
"""


class Wallet:
    """Acts on the effects of withdrawals, each once, whatever order their topics are read in."""

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
            if effect in MONEY:
                # Money effects always act. An amount that is null is not known yet: ask the gateway before paying.
                amounts = {
                    "refund_unfilled": payload.get("release_minor"),
                    "compensate_reversed_fill": payload.get("amount_minor"),
                }
                transaction.execute("INSERT INTO movements VALUES (?, ?, ?)", (subject, effect, amounts.get(effect)))
                return True
            if effect in CLOSED:
                return transaction.execute("INSERT OR IGNORE INTO closed VALUES (?)", (subject,)).rowcount == 1
            if effect in STATUS:
                return self._show(effect, subject, version, payload)
        return False  # an effect of a newer version of the pipeline

    def _show(self, effect: str, subject: str, version: int, payload: Mapping[str, Any]) -> bool:
        # The newest of a subject wins. By subject, because the ticket may still be unknown.
        if effect == "show_progress":
            text = f"{payload['filled_minor'] / 100:,.2f} of {payload['amount_total_minor'] / 100:,.2f}"
        else:
            text = str(payload["status"])
        written = self._database.execute(
            "INSERT INTO shown VALUES (?, ?, ?) ON CONFLICT (subject) DO UPDATE"
            " SET version = excluded.version, text = excluded.text WHERE shown.version < excluded.version",
            (subject, version, text),
        )
        return written.rowcount == 1


def run(wallet: Wallet, bootstrap: str, prefix: str = "tallyhook") -> None:
    """Reads the effect topics of withdrawals until the process is ended."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "wallet",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",  # without it, effects of aborted transactions are seen as well
        }
    )
    consumer.subscribe([f"{prefix}.effects.{name.replace('_', '-')}" for name in (*MONEY, *CLOSED, *STATUS)])
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
            wallet.take(headers, json.loads(message.value() or b""))
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    run(Wallet(sqlite3.connect(sys.argv[1])), sys.argv[2])
