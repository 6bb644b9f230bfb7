"""The health that the image reports is that of the process that the container runs."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.health import HealthServer
from tallyhook.metrics import Metrics
from tallyhook.operations.healthcheck import STAGES, main, stage_of
from tallyhook.settings import describe


@pytest.fixture
def reasons() -> list[str]:
    """Why the process is not ready."""
    return []


@pytest.fixture
def port(reasons: list[str]) -> Iterator[int]:
    """The health pages of a process that lives, and is ready unless there are reasons."""
    server = HealthServer("127.0.0.1", 0, Metrics(), not_live=list, not_ready=lambda: reasons)
    server.start()
    yield server.port
    server.stop()


def first_process(folder: Path, *words: str) -> Path:
    """A command line as Linux shows it."""
    path = folder / "cmdline"
    path.write_bytes(b"".join(word.encode() + b"\0" for word in words))
    return path


@pytest.mark.parametrize(
    ("command", "stage"),
    [
        ("/opt/tallyhook/bin/python /opt/tallyhook/bin/tallyhook sink", "sink"),
        ("/sbin/docker-init -- tallyhook ingress", "ingress"),
        ("python -m tallyhook stream", "stream"),
        ("tallyhook relay", "relay"),
        ("tallyhook sink accept-loss --partition 1", None),
        ("tallyhook migrate", None),
        ("tallyhook gateway --serve", None),
        ("tallyhook", None),
        ("sleep infinity", None),
        ("", None),
    ],
)
def test_which_process_it_is(command: str, stage: str | None) -> None:
    """By its command; what ends by itself has no pages."""
    assert stage_of(command.split()) == stage


def test_ports_are_those_of_the_settings() -> None:
    """Variables and defaults of the program."""
    rows = {row.variable: row.default for row in describe()}
    assert {variable: str(default) for variable, default in STAGES.values()} == {
        variable: rows[variable] for variable, _ in STAGES.values()
    }


def test_a_process_that_lives_but_is_not_ready(
    port: int, reasons: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`livez` is content, `readyz` tells the reason; both are content once it is ready."""
    path = first_process(tmp_path, "tallyhook", "sink")
    monkeypatch.setenv("TALLYHOOK_SINK_HEALTH_PORT", str(port))
    assert (main([], path), main(["livez"], path), main(["readyz"], path)) == (0, 0, 0)
    reasons.append("PostgreSQL does not answer")
    assert main([], path) == 0
    assert "PostgreSQL does not answer" in str(main(["readyz"], path))


def test_a_process_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens."""
    monkeypatch.setenv("TALLYHOOK_RELAY_HEALTH_PORT", "1")
    assert "does not answer" in str(main([], first_process(tmp_path, "tallyhook", "relay")))


def test_a_job_is_healthy_while_it_runs(tmp_path: Path) -> None:
    """It has no pages to ask."""
    assert main(["readyz"], first_process(tmp_path, "tallyhook", "migrate")) == 0


def test_the_program_ends_with_a_code_and_starts_quickly() -> None:
    """Wrong usage is said; it imports none of the large libraries."""
    wrong = subprocess.run(
        [sys.executable, "-m", "tallyhook.operations.healthcheck", "health"], capture_output=True, text=True, timeout=30
    )
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "usage: " in wrong.stderr
    check = "import sys, tallyhook.operations.healthcheck; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=30, check=True)
    assert not {"pydantic", "typer", "confluent_kafka", "aiohttp", "tallyhook.settings"} & set(done.stdout.split())
