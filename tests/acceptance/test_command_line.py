"""The command line as a user meets it before anything runs: help, wrong usage, wrong settings."""

import json
import os
import subprocess
import sys

import pytest

COMMANDS = (
    "up",
    "demo",
    "ingress",
    "stream",
    "sink",
    "relay",
    "migrate",
    "topics show",
    "topics apply",
    "settings",
    "explain",
    "audit",
    "parked",
    "quarantine list",
    "quarantine show",
    "quarantine resolve",
    "redrive",
    "keys generate",
    "sign",
    "send",
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


@pytest.mark.parametrize("command", COMMANDS)
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


def test_wrong_usage_ends_with_two() -> None:
    """An option that does not exist."""
    assert tallyhook("explain", "--no-such-option").returncode == 2
    assert tallyhook("no-such-command").returncode == 2
