"""The audit of many events: memory that does not grow with them, a part since some moment, an end by Ctrl-C."""

import json
import os
import pty
import signal
import subprocess
import sys
import tracemalloc
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import LiteralString

import pytest
from psycopg import IsolationLevel, sql
from pydantic import SecretStr

from tallyhook.operations.audit import marks as noting
from tallyhook.operations.audit.findings import AuditReport, CheckName
from tallyhook.operations.audit.run import audit, examine
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.postgres import Connection, connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings, Settings, as_environment
from tests.commands import run
from tests.integration.audit.objects import settings_of
from tests.integration.audit.synthetic import PARTITIONS, fill
from tests.running import await_true

DEPOSITS = 2_000
SPAN = timedelta(hours=24)
PATIENCE_SECONDS = 60.0
MEMORY_BYTES = 3 << 20
pytestmark = pytest.mark.timeout(120)


@dataclass(frozen=True)
class Made:
    """A synthetic installation and a connection to look at it."""

    settings: Settings
    connection: Connection

    def environment(self) -> dict[str, str]:
        """For `tallyhook` as a process."""
        foreign = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        return foreign | as_environment(self.settings) | {"TERM": "xterm", "COLUMNS": "120"}

    def start(self, *arguments: str, errors: int = subprocess.PIPE) -> subprocess.Popen[str]:
        """`tallyhook audit`."""
        command = [sys.executable, "-m", "tallyhook", "audit", *arguments]
        return subprocess.Popen(
            command, env=self.environment(), stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
        )

    def audit_planted(self, deposits: Mapping[CheckName, int], since: datetime | None) -> AuditReport:
        """An audit that sees a fault in each of the deposits; they are rolled back afterwards."""
        marks = noting.note(self.settings)
        with connect(self.settings.database, "test") as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            with connection.transaction(force_rollback=True):
                _use(connection, self.settings)
                for name, number in deposits.items():
                    assert connection.execute(FAULTS[name], (str(number),)).rowcount == 1, name
                return examine(self.settings, marks, Snapshot(connection, self.settings, since), lambda *_: None)


def _use(connection: Connection, settings: Settings) -> None:
    name = sql.Identifier(settings.installation.schema_name)
    connection.execute(sql.SQL("SET search_path TO {}").format(name))


def _made(bootstrap: str, url: str, deposits: int) -> Settings:
    name = f"t{uuid.uuid4().hex[:12]}"
    settings = settings_of(
        Installation(topic_prefix=name, schema_=name, partitions=PARTITIONS),
        KafkaSettings(bootstrap=bootstrap),
        DatabaseSettings(url=SecretStr(url)),
    )
    fill(settings, deposits, SPAN)
    return settings


@pytest.fixture(scope="module")
def many(kafka_bootstrap: str, database_url: str) -> Iterator[Made]:
    """8,000 events of a day."""
    settings = _made(kafka_bootstrap, database_url, DEPOSITS)
    with connect(settings.database, "test") as connection:
        _use(connection, settings)
        yield Made(settings, connection)


def _peak_bytes(settings: Settings) -> int:
    """The most that Python held at once during an audit, which must be clean."""
    tracemalloc.start()
    try:
        assert audit(settings, lambda *_: None).red == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_events(many: Made, kafka_bootstrap: str, database_url: str) -> None:
    """Four times the events, 6,000 more of 1 kB each and 7,500 more effects: not half of their bytes are held."""
    few = _peak_bytes(_made(kafka_bootstrap, database_url, DEPOSITS // 4))
    assert _peak_bytes(many.settings) - few < MEMORY_BYTES


def test_an_audit_of_a_part_names_the_part_and_the_rest(many: Made) -> None:
    """A quarter of the day: a quarter of each is compared, and each check tells how much was left out."""
    done = run(("audit", "--since", "6h", "--json"), many.environment())
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    age = datetime.now(UTC) - datetime.fromisoformat(report["since"])
    assert timedelta(hours=6) <= age < timedelta(hours=6, minutes=5)
    checks = {check["name"]: check for check in report["checks"]}
    rows: dict[str, int] = {"aggregates": DEPOSITS, "verdicts": 4 * DEPOSITS, "outbox": 5 * DEPOSITS}
    for name, there in rows.items():
        (what,) = checks[name]["left_out"]
        assert "nothing was received or changed since" in what
        assert checks[name]["looked_at"] + checks[name]["left_out"][what] == there
        assert there * 0.23 < checks[name]["looked_at"] < there * 0.26
    for name in ("events", "deliveries", "arrival_numbers", "outbox_numbers", "ledger", "effects"):
        left_out = checks[name]["left_out"]
        assert left_out, name
        assert all("left out by --since" in what or "not followed" in what for what in left_out), left_out
    assert checks["events"]["looked_at"] < DEPOSITS * 4 * 0.26
    text = run(("audit", "--since", "6h"), many.environment()).stdout
    assert "verdicts: not judged: " in text
    assert ", only what was received or changed since " in text.splitlines()[-1]


FAULTS: dict[CheckName, LiteralString] = {
    "aggregates": "UPDATE pg_deposits SET is_terminal = true WHERE pg_deposit_id = 'dep_' || %s",
    "verdicts": "UPDATE pg_webhook_inbox SET reason = 'x' WHERE event_id = 'evt_' || %s || '_2'",
    "outbox": "UPDATE pg_outbox SET version = 7 WHERE dedupe_key = 'evt_' || %s || '_1:update_order_status'",
    "outbox_numbers": "DELETE FROM pg_outbox WHERE dedupe_key = 'evt_' || %s || '_2:update_order_status'",
    "arrival_numbers": "DELETE FROM pg_webhook_inbox WHERE event_id = 'evt_' || %s || '_2'",
    "deliveries": "UPDATE pg_webhook_inbox SET event_raw = event_raw || ' ' WHERE event_id = 'evt_' || %s || '_2'",
    "ledger": "DELETE FROM pg_user_balance_entries WHERE entry_key = 'deposit:dep_' || %s || ':credit'",
    "effects": "UPDATE pg_outbox SET payload = '{}' WHERE dedupe_key = 'deposit:dep_' || %s || ':release_goods'",
}
"""Each is planted in a deposit of its own, so that none hides another."""


def test_a_fault_is_found_in_the_part_and_only_there(many: Made) -> None:
    """In young objects each is found and named; those of long ago the whole audit finds, that of a part does not."""
    since = datetime.now(UTC) - timedelta(hours=6)
    young = many.audit_planted(dict(zip(FAULTS, range(DEPOSITS - 50, DEPOSITS, 4), strict=False)), since)
    old = dict(zip(FAULTS, range(8, 80, 4), strict=False))
    for report in (young, many.audit_planted(old, None)):
        assert set(FAULTS) <= set(report.red), report.red
    # Balances have no moment of change, so each is always held against its entries.
    assert many.audit_planted(old, since).red == ["ledger"]


def test_a_moment_that_is_none_or_lies_ahead_is_wrong_usage(many: Made) -> None:
    """Exit code 2, and the message says what would be right."""
    for since, words in (("yesterday", "12h"), ("2999-01-01", "future")):
        done = run(("audit", "--since", since), many.environment())
        assert (done.returncode, done.stdout) == (2, "")
        assert words in done.stderr


@pytest.mark.parametrize("moment", ["the snapshot", "the walk"])
def test_an_interrupted_audit_ends_at_once(many: Made, moment: str) -> None:
    """Ctrl-C: exit code 130, one sentence, nothing that looks like a report, and no session that goes on."""
    sessions = "SELECT query FROM pg_stat_activity WHERE application_name = 'tallyhook-audit' AND query <> ''"
    wanted = "" if moment == "the snapshot" else "audit_inbox"
    process = many.start("--json")

    def there() -> bool:
        row = many.connection.execute(sessions).fetchone()
        return row is not None and wanted in str(row[0])

    while not there():
        assert process.poll() is None, "it ended before it was interrupted"
    process.send_signal(signal.SIGINT)
    told, errors = process.communicate(timeout=10)
    assert (process.returncode, told, errors) == (130, "", "tallyhook: interrupted\n")
    await_true(lambda: many.connection.execute(sessions).fetchone() is None, PATIENCE_SECONDS, "its session's end")


def test_progress_is_for_people_at_a_terminal(many: Made) -> None:
    """A bar on standard error where that is a terminal; with --json, not even there."""
    for arguments, is_shown in ((("--since", "1h"), True), (("--since", "1h", "--json"), False)):
        here, there = pty.openpty()
        process = many.start(*arguments, errors=there)
        os.close(there)
        seen = b""
        try:
            while chunk := os.read(here, 65_536):
                seen += chunk
        except OSError:
            # The terminal's other end is gone once the process has ended.
            pass
        told, _ = process.communicate(timeout=PATIENCE_SECONDS)
        os.close(here)
        assert process.returncode == 0
        assert (b"events and deliveries" in seen) is is_shown
        assert "\x1b" not in told
        if not is_shown:
            assert seen == b""
