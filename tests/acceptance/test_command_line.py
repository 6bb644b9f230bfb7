"""The command line as a user meets it before anything runs: help, wrong usage, wrong settings."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tallyhook.gateway.signing import SigningKey
from tests.command_tree import group_names
from tests.commands import run

COMMANDS = (
    "up",
    "demo",
    "ingress",
    "stream",
    "sink",
    "sink accept-loss",
    "relay",
    "relay recover",
    "migrate",
    "topics show",
    "topics apply",
    "topics acl",
    "settings",
    "doctor",
    "explain",
    "timeline",
    "audit",
    "gaps",
    "gaps ignore",
    "backfill",
    "reconcile",
    "parked",
    "quarantine list",
    "quarantine show",
    "quarantine resolve",
    "redrive",
    "keys generate",
    "sign",
    "send",
    "gateway",
    "import",
    "compare",
    "bench sink",
    "bench guard",
)


def tallyhook(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the command with no setting but those given."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    return subprocess.run(
        [sys.executable, "-m", "tallyhook", *arguments],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("command", [*COMMANDS, *sorted(group_names())])
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    """`--help` ends with 0 and shows an example that names the command."""
    shown = tallyhook(*command.split(), "--help")
    assert shown.returncode == 0, shown.stderr
    example = " ".join(shown.stdout.split("Example:")[1:]).split()
    assert "Example:" in shown.stdout
    assert "tallyhook" in example


def test_the_list_of_commands_is_whole() -> None:
    """Every command that exists is in the list above."""
    shown = tallyhook("--help").stdout
    listed = {
        line.split()[0] for line in shown.split("Commands:")[1].splitlines() if line.startswith("  ") and line[2] != " "
    }
    assert listed == {command.split()[0] for command in COMMANDS}


def test_a_wrong_setting_ends_the_process_with_its_bounds() -> None:
    """The variable, its value, the bounds and the unit; exit code 2."""
    for command in ("settings", "sink", "ingress"):
        refused = tallyhook(command, TALLYHOOK_SINK_BATCH_ROWS="0")
        assert refused.returncode == 2, refused.stderr
        assert "TALLYHOOK_SINK_BATCH_ROWS=0: must be 1..5000 (rows)" in refused.stderr


def test_a_mistyped_variable_is_named() -> None:
    """A variable that looks like ours and is none is a typing error."""
    refused = tallyhook("settings", TALLYHOOK_SINK_BATCH_ROW="5")
    assert refused.returncode == 2
    assert "TALLYHOOK_SINK_BATCH_ROW" in refused.stderr


def test_settings_never_show_a_secret() -> None:
    """Neither in the table nor in JSON, nor where the value is wrong."""
    shown = tallyhook("settings", "--json", TALLYHOOK_DATABASE_URL="postgresql://u:hunter2@127.0.0.1/x")
    assert shown.returncode == 0, shown.stderr
    assert "hunter2" not in shown.stdout + shown.stderr
    row = next(r for r in json.loads(shown.stdout) if r["variable"] == "TALLYHOOK_DATABASE_URL")
    assert row["environment"] == "..."


@pytest.mark.parametrize("command", ["stream", "sink", "relay", "ingress", "migrate", "topics show", "audit"])
def test_a_missing_address_names_the_variable(command: str) -> None:
    """Without Kafka or PostgreSQL: exit code 2 and what to set."""
    refused = tallyhook(*command.split())
    assert refused.returncode == 2, refused.stderr
    assert "TALLYHOOK_KAFKA_BOOTSTRAP" in refused.stderr or "TALLYHOOK_DATABASE_URL" in refused.stderr


@pytest.mark.parametrize("url", ["postgresql://u:hunter2%zz@127.0.0.1/db", "postgres:/usr:hunter2@h/db"])
@pytest.mark.parametrize("command", ["explain evt_1", "migrate", "sink"])
def test_a_mistyped_database_address_is_not_shown(command: str, url: str) -> None:
    """Exit code 2 before anything connects; the variable is named, and no part of its value."""
    refused = tallyhook(*command.split(), TALLYHOOK_DATABASE_URL=url, TALLYHOOK_KAFKA_BOOTSTRAP="127.0.0.1:1")
    shown = refused.stdout + refused.stderr
    assert refused.returncode == 2, shown
    assert "TALLYHOOK_DATABASE_URL=...: must be" in shown
    assert "hunter2" not in shown
    assert "Traceback" not in shown


def test_the_variable_of_a_key_is_a_known_one() -> None:
    """`sign` and `send` offer it."""
    assert tallyhook("settings", TALLYHOOK_SIGNING_KEY="whsk_x").returncode == 0


def test_a_broker_that_does_not_answer_is_told() -> None:
    """In a sentence with the address and what to do, after the time that a request may take."""
    begun = time.monotonic()
    refused = tallyhook(
        "topics", "show", TALLYHOOK_KAFKA_BOOTSTRAP="127.0.0.1:1", TALLYHOOK_KAFKA_REQUEST_TIMEOUT_SECONDS="2"
    )
    assert refused.returncode == 1, refused.stderr
    assert "Kafka at 127.0.0.1:1 does not answer within 2 s" in refused.stderr
    assert "TALLYHOOK_KAFKA_BOOTSTRAP" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize("event_id", ["evt_ก", "evt_é", "evt_1\r\nx-more: 1", "evt_\udcff", "x" * 513, ""])
@pytest.mark.parametrize("command", ["sign", "send"])
def test_an_id_that_no_header_can_carry_is_refused(command: str, event_id: str, tmp_path: Path) -> None:
    """Exit code 2 with what to do, and no line of headers; whether it stands in the event or is given."""
    key = SigningKey.generate().secret_text()
    named, plain = tmp_path / "named.json", tmp_path / "plain.json"
    named.write_text(json.dumps({"id": event_id}))
    plain.write_text('{"id":"evt_1"}')
    attempts = [(str(named),), *([] if "\udcff" in event_id else [(str(plain), "--id", event_id)])]
    for arguments in attempts:
        refused = run((command, *arguments), {"TALLYHOOK_SIGNING_KEY": key})
        assert refused.returncode == 2, refused.stderr
        assert "give --id with visible ASCII" in " ".join(refused.stderr.split())
        assert refused.stdout == ""


def test_nothing_is_sent_of_a_file_with_a_bad_event(tmp_path: Path) -> None:
    """A line that is no JSON, or an id that cannot be sent, is refused before the first is posted."""
    key = SigningKey.generate().secret_text()
    file = tmp_path / "events.jsonl"
    for second, message in (('{"id":"evt_2"', "line 2 is no JSON object"), ('{"id":"evt ก"}', "visible ASCII")):
        file.write_text('{"id":"evt_1"}\n' + second + '\n{"id":"evt_3"}\n')
        # Were the first one posted, its line of output would say that nobody answers.
        refused = run(("send", str(file), "--url", "http://127.0.0.1:1/"), {"TALLYHOOK_SIGNING_KEY": key})
        assert refused.returncode == 2, refused.stderr
        assert message in refused.stderr
        assert refused.stdout == ""


def test_wrong_usage_ends_with_two() -> None:
    """An option that does not exist."""
    assert tallyhook("explain", "--no-such-option").returncode == 2
    assert tallyhook("no-such-command").returncode == 2
