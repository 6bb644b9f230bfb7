"""Thousands of rows, redriven while traffic flows, stopped in every way, done again: each event counts once."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.postgres import connect
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings
from tests.integration.operations.operated import PATIENCE_SECONDS, Operated, operated
from tests.integration.operations.under_fire import (
    REASON,
    assert_counted_once,
    end_redrive,
    flowing,
    set_aside_many,
    start_redrive,
    stop_in_the_middle,
)
from tests.running import await_true

ROWS = 2_500
RATE = 2_000
WHY = ("--reason", "paid by hand", "--actor", "nok")
pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def fired(
    kafka_settings: KafkaSettings, database_settings: DatabaseSettings, installation: Installation, tmp_path: Path
) -> Iterator[Operated]:
    """An installation of the test's own with stream and sink: the audit must find nothing else in it."""
    made = operated(kafka_settings, database_settings, installation, tmp_path)
    try:
        made.start("stream", TALLYHOOK_STREAM_SESSION_TIMEOUT_SECONDS="6")
        made.start("sink")
        yield made
    finally:
        made.close()


def test_many_rows_are_redriven_once_under_fire(fired: Operated) -> None:
    """Ctrl-C, kill -9, then to its end, while younger events of the same deposits come; a second time does nothing."""
    set_aside_many(fired, ROWS)
    with flowing(fired, ROWS) as traffic:
        assert stop_in_the_middle(fired, RATE, signal.SIGINT) == 130
        assert stop_in_the_middle(fired, RATE, signal.SIGKILL) == -signal.SIGKILL
        told, _ = end_redrive(fired, RATE)
        assert set(told["outcomes"]) <= {"sent", "closed meanwhile", "in the inbox"}
    assert_counted_once(fired, ROWS, traffic.sent, PATIENCE_SECONDS)
    again, _ = end_redrive(fired, RATE)
    assert again == {"rows": [], "dry_run": False, "outcomes": {}, "left": 0}


def test_of_many_rows_only_those_that_need_a_person_are_told(still: Operated) -> None:
    """Above a thousand rows the text has the sum and what could not be sent; --json has every row."""
    set_aside_many(still, 1_100)
    assert still.rows("UPDATE quarantined_events SET headers = '{}' WHERE event_id = 'evt_many_7' RETURNING 1")
    text = still.command("redrive", "--dry-run", "--limit", "1100")
    assert "1,099 would be sent, 1 unusable" in text.stdout
    assert len(text.stdout.splitlines()) == 2
    assert "evt_many_7" in text.stdout.splitlines()[0]
    assert len(still.json("redrive", "--dry-run", "--limit", "1100", code=1)["rows"]) == 1_100


def test_progress_is_for_people_at_a_terminal(still: Operated) -> None:
    """A bar on standard error where that is a terminal, and with --json not even there."""
    set_aside_many(still, 20)
    for arguments, is_shown in (((), True), (("--json",), False)):
        here, there = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "tallyhook", "redrive", "--reason", REASON, "--yes", *arguments],
            env=still.variables(TERM="xterm", COLUMNS="120"),
            stdout=subprocess.PIPE,
            stderr=there,
            text=True,
        )
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
        assert (b"sending" in seen) is is_shown
        assert "\x1b" not in told
        if not is_shown:
            assert json.loads(told)["outcomes"] == {"sent": 20}
            assert seen == b""


def test_a_database_that_goes_away_ends_it_with_a_sentence(still: Operated) -> None:
    """Its session is ended in the middle: exit code 1 and no traceback, the document is whole, and it can go on."""
    set_aside_many(still, 300)
    process = start_redrive(still, 50, "--json")
    begun = "SELECT count(*) FROM quarantined_events WHERE attempts > 1"
    await_true(lambda: still.rows(begun)[0][0] > 0, PATIENCE_SECONDS, "the first page")
    still.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tallyhook-redrive'")
    told, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1
    assert errors.startswith("tallyhook: PostgreSQL, during the command: ")
    assert "Traceback" not in errors
    first = json.loads(told)
    assert first["left"] == 300 - len(first["rows"])
    told_again, _ = end_redrive(still, 10_000)
    assert told_again["outcomes"] == {"sent": 300}


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_resolve_closes_nothing(quiet: Operated, how: signal.Signals) -> None:
    """It is stopped while it waits for one row; done again it closes all of them, and once."""
    set_aside_many(quiet, ROWS)
    ids = [str(row[0]) for row in quiet.rows("SELECT id FROM quarantined_events ORDER BY id")]
    file = quiet.folder / "ids.txt"
    file.write_text("\n".join(ids))
    command = ["quarantine", "resolve", "--ids-from", str(file), "--accept", *WHY]
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tallyhook-quarantine'"
    with connect(quiet.settings.database, "test") as other, other.transaction():
        schema = quiet.settings.installation.schema_name
        other.execute(f'SELECT FROM "{schema}".quarantined_events WHERE id = {ids[-1]} FOR UPDATE'.encode())
        process = subprocess.Popen(
            [sys.executable, "-m", "tallyhook", *command],
            env=quiet.variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        await_true(
            lambda: quiet.rows(f"{waiting} AND wait_event_type = 'Lock'") == [(1,)], PATIENCE_SECONDS, "it to wait"
        )
        process.send_signal(how)
        told, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == (130 if how is signal.SIGINT else -how)
    assert (told, errors) == ("", "tallyhook: interrupted\n" if how is signal.SIGINT else "")
    await_true(lambda: quiet.rows(waiting) == [(0,)], PATIENCE_SECONDS, "its session's end")
    states = "SELECT state, count(*) FROM quarantined_events GROUP BY state"
    assert quiet.rows(states) == [("open", ROWS)]
    assert quiet.command(*command).stdout == f"closed: {ROWS:,} of {ROWS:,} rows\n"
    assert quiet.rows(states) == [("discarded", ROWS)]
    assert f"closed: 0 of {ROWS:,} rows" in quiet.command(*command).stdout


def test_ids_of_a_file_are_checked_before_anything_is_closed(quiet: Operated) -> None:
    """A line that is no id, an empty file, a row that does not exist: nothing is closed."""
    set_aside_many(quiet, 3)
    file = quiet.folder / "ids.txt"
    for text, code, words in (("1\nx\n", 2, "line 2"), ("\n", 2, "--ids-from"), ("1\n99\n", 1, "id 99")):
        file.write_text(text)
        done = quiet.command("quarantine", "resolve", "--ids-from", str(file), "--discard", *WHY)
        assert (done.returncode, words in done.stderr) == (code, True), done.stderr
    assert quiet.rows("SELECT count(*) FROM quarantined_events WHERE state = 'open'") == [(3,)]
