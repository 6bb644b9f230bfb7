"""Redrive while traffic flows: many rows made by SQL, commands that are stopped, and what must be there in the end.

By hand, on servers of its own: `python -m tests.integration.operations.under_fire --rows 200000 --state-dir DIR`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString

from pydantic import SecretStr

from tallyhook.local.stack import local_stack
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.operations.operated import Operated, deposit_body, door_headers, operated
from tests.running import await_true

PATIENCE_SECONDS = 60.0
REASON = "database_refused"
OLDER_EACH = 10
"""Of every tenth deposit a younger event comes with the traffic."""

_CORRELATIONS: LiteralString = (
    "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
    " SELECT 'dep_many_' || n, 'ref_many_' || n, 'ord_many_' || n, 'usr_many_' || n %% 1000"
    " FROM generate_series(0, %s - 1) AS n"
)
_ROWS: LiteralString = (
    "INSERT INTO quarantined_events (stage, reason, detail, event_id, object_id, raw, headers, source_topic,"
    " source_partition, source_offset)"
    " SELECT 'sinks', 'database_refused', 'SQLSTATE 22003, repaired since', replace(%s, '#', n::text),"
    " 'dep_many_' || n, convert_to(replace(%s, '#', n::text), 'UTF8'), replace(%s, '#', n::text)::jsonb, %s, 9, n"
    " FROM generate_series(0, %s - 1) AS n"
)
STATES = "SELECT state, count(*) FROM quarantined_events WHERE event_id LIKE 'evt_many_%' GROUP BY state"
BEGUN = "SELECT count(*) FROM quarantined_events WHERE event_id LIKE 'evt_many_%' AND attempts > 1"


def set_aside_many(installation: Operated, count: int) -> None:
    """Sound events of as many deposits, which the sink would apply by now."""
    body = deposit_body("evt_many_#", "dep_many_#", 3, "settled").decode()
    headers = {
        name: value.decode() if isinstance(value, bytes) else value for name, value in door_headers(json.loads(body))
    }
    connection = installation.connection
    connection.execute(_CORRELATIONS, (count,))
    connection.execute(_ROWS, ("evt_many_#", body, json.dumps(headers), installation.names.events, count))
    connection.execute("ANALYZE quarantined_events")


@dataclass
class Traffic:
    """Live events while commands run: new deposits, and younger events of deposits whose older one is set aside."""

    installation: Operated
    rows: int
    sent: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """About a hundred a second until it is stopped."""
        while not self._stopping.wait(0.01):
            number, self.sent = self.sent, self.sent + 1
            older = number * OLDER_EACH
            deposit = f"dep_many_{older}" if older < self.rows else f"dep_live_{number}"
            body = deposit_body(f"evt_live_{number}", deposit, 4, "under_review")
            self.installation.client.produce(
                self.installation.names.events, body, deposit, headers=door_headers(json.loads(body))
            )
            self.installation.client.poll(0)

    def stop(self) -> None:
        """No more; what was sent is there."""
        self._stopping.set()

    def correlate(self) -> None:
        """For as many deposits of its own as it may come to, and more."""
        self.installation.connection.execute(
            "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
            " SELECT 'dep_live_' || n, 'ref_live_' || n, 'ord_live_' || n, 'usr_live' FROM generate_series(0, 99999) n"
        )


@contextmanager
def flowing(installation: Operated, rows: int) -> Iterator[Traffic]:
    """Traffic for the time of the block; at its end all of it is in the topic."""
    traffic = Traffic(installation, rows)
    traffic.correlate()
    thread = threading.Thread(target=traffic.run)
    thread.start()
    try:
        yield traffic
    finally:
        traffic.stop()
        thread.join()
        assert installation.client.flush(PATIENCE_SECONDS) == 0


def start_redrive(installation: Operated, rate: int, *more: str) -> "subprocess.Popen[str]":
    """`tallyhook redrive` of every row, as a process of its own."""
    command = [sys.executable, "-m", "tallyhook", "redrive", "--reason", REASON, "--yes", "--rate", str(rate)]
    return subprocess.Popen(
        [*command, "--limit", "1000000", *more],
        env=installation.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stop_in_the_middle(installation: Operated, rate: int, how: signal.Signals) -> int:
    """Starts it, stops it once it has sent rows that it had not before, and gives its exit code."""
    ((before,),) = installation.rows(BEGUN)
    process = start_redrive(installation, rate)
    await_true(lambda: installation.rows(BEGUN)[0][0] > before, PATIENCE_SECONDS, "rows that are sent")
    process.send_signal(how)
    process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode


def end_redrive(installation: Operated, rate: int) -> tuple[dict[str, Any], int]:
    """Runs it to its end; gives what it told and its peak resident memory (KiB)."""
    process = start_redrive(installation, rate, "--json")
    assert process.stdout is not None
    told = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, told[-2000:]
    found: dict[str, Any] = json.loads(told)
    return found, usage.ru_maxrss


def assert_counted_once(installation: Operated, rows: int, live: int, patience_seconds: float) -> None:
    """Every row is closed, every event is in the inbox once with its effects, and the audit is clean."""
    await_true(
        lambda: installation.rows(STATES) == [("redriven", rows)], patience_seconds, f"{rows} rows that are closed"
    )
    live_there = "SELECT count(*) FROM pg_webhook_inbox WHERE event_id LIKE 'evt_live_%'"
    installation.await_rows([(live,)], live_there)
    many = "SELECT count(*), count(DISTINCT event_id) FROM pg_webhook_inbox WHERE event_id LIKE 'evt_many_%'"
    assert installation.rows(f"{many} AND origin = 'redrive'") == [(rows, rows)]
    # Where the younger event came first the older one is late: kept, without an effect.
    late = "SELECT count(*) FROM pg_webhook_inbox WHERE event_id LIKE 'evt_many_%' AND verdict = 'late'"
    ((older,),) = installation.rows(late)
    assert older <= min(live, rows // OLDER_EACH)
    entries = "SELECT count(*), coalesce(sum(amount_minor), 0)::bigint FROM pg_user_balance_entries"
    assert installation.rows(entries) == [(rows - older, (rows - older) * 10_000)]
    goods = "SELECT count(*), count(DISTINCT aggregateid) FROM pg_outbox WHERE topic = 'release_goods'"
    assert installation.rows(goods) == [(rows - older, rows - older)]
    report = installation.json("audit")
    assert report["clean"] is True


def _by_hand(installation: Operated, rows: int, rate: int) -> None:
    began = time.monotonic()
    set_aside_many(installation, rows)
    print(f"{rows:,} rows set aside: {time.monotonic() - began:.0f} s", flush=True)
    with flowing(installation, rows) as traffic:
        began = time.monotonic()
        print("stopped by Ctrl-C:", stop_in_the_middle(installation, rate, signal.SIGINT), flush=True)
        print("stopped by kill -9:", stop_in_the_middle(installation, rate, signal.SIGKILL), flush=True)
        told, peak_kib = end_redrive(installation, rate)
        seconds = time.monotonic() - began
        print(f"all sent: {seconds:.0f} s, peak {peak_kib / 1024:.0f} MiB,", told["outcomes"], flush=True)
    assert_counted_once(installation, rows, traffic.sent, 1200)
    print(f"all applied: {time.monotonic() - began:.0f} s; live events meanwhile: {traffic.sent}", flush=True)
    told, peak_kib = end_redrive(installation, rate)
    print(f"again: {told['outcomes']}, peak {peak_kib / 1024:.0f} MiB", flush=True)


def main() -> None:
    """Sets rows aside, redrives them under fire, and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--state-dir", type=Path, required=True)
    options = parser.parse_args()
    with local_stack(options.state_dir, KafkaSettings(), DatabaseSettings(), lambda _: None) as stack:
        installation = operated(
            KafkaSettings(bootstrap=stack.kafka_bootstrap),
            DatabaseSettings(url=SecretStr(stack.database_url)),
            Installation(),
            options.state_dir,
        )
        try:
            installation.start("stream", TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS="6")
            installation.start("sink", TALLYHOOK_SINK_QUARANTINE_LIMIT="1000")
            _by_hand(installation, options.rows, options.rate)
        finally:
            installation.close()


if __name__ == "__main__":
    main()
