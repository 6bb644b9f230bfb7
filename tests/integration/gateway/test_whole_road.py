"""The simulated gateway and the whole pipeline: what it delivers comes to the end that the world expects."""

import json
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tallyhook.operations.running_pipeline import described_file
from tests.running import RunningPipeline, await_true

OBJECTS = "12"
CHECK_SECONDS = "90"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPipeline]:
    """A pipeline that runs its own simulated gateway."""
    with RunningPipeline(
        tmp_path_factory.mktemp("gateway") / "state",
        "--gateway",
        TALLYHOOK_GATEWAY_SIM_SEED="31",
        TALLYHOOK_GATEWAY_SIM_OBJECTS=OBJECTS,
        TALLYHOOK_GATEWAY_SIM_TIME_FACTOR="200000",
        TALLYHOOK_INGRESS_KEY_RELOAD_SECONDS="0.5",
    ) as running:
        yield running
    assert not described_file(running.state_dir).exists()


def asked(pipeline: RunningPipeline, path: str) -> dict[str, Any]:
    """What the API of the pipeline's gateway says."""
    exports = dict(
        line.removeprefix("export ").split("=", 1)
        for line in (pipeline.state_dir / "run" / "env").read_text().splitlines()
    )
    assert exports["TALLYHOOK_GATEWAY_API_URL"] == pipeline.ready["gateway_url"]
    request = urllib.request.Request(
        exports["TALLYHOOK_GATEWAY_API_URL"] + path,
        headers={"Authorization": f"Bearer {exports['TALLYHOOK_GATEWAY_API_KEY']}"},
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        said: dict[str, Any] = json.load(answer)
    return said


def command(pipeline: RunningPipeline, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Plays against the running pipeline, found by its state directory."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    return subprocess.run(
        [
            *(sys.executable, "-m", "tallyhook", "gateway", "--state-dir", str(pipeline.state_dir), "--json"),
            *("--api-port", "0", *arguments),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
    )


def finished(pipeline: RunningPipeline) -> bool:
    """Whether the pipeline's own gateway has delivered everything."""
    try:
        return bool(asked(pipeline, "/simulator/state")["finished"])
    except (urllib.error.URLError, ConnectionError):
        return False


def test_up_runs_a_gateway_that_delivers_and_comes_back(pipeline: RunningPipeline) -> None:
    """Its API answers at the exported address; killed, it goes on where it was, and its world ends as it must."""
    assert stat.S_IMODE(described_file(pipeline.state_dir).stat().st_mode) == 0o600
    assert "gateway" not in pipeline.ready["metrics_urls"]
    await_true(lambda: finished(pipeline), 60, "the gateway's last delivery")
    assert asked(pipeline, "/simulator/state")["gave_up"] == 0
    listed = asked(pipeline, "/v1/pay/events?limit=1")
    assert listed["has_more"]
    before = pipeline.ready["pids"]["gateway"]
    os.kill(before, 9)
    await_true(lambda: pipeline.ready["pids"]["gateway"] not in (before, None), 30, "another gateway")
    await_true(lambda: finished(pipeline), 60, "a gateway that knows what was delivered")
    state = asked(pipeline, "/simulator/state")
    assert (state["delivered"], state["pending"], state["attempts"]) == (state["deliverable"], 0, 0)
    assert asked(pipeline, "/v1/pay/events?limit=1") == listed
    # The very same world from the command's side: every delivery is a redelivery, and the end is the same.
    again = command(
        pipeline,
        "--seed",
        "31",
        "--objects",
        OBJECTS,
        "--time-factor",
        "200000",
        "--check",
        "--check-seconds",
        CHECK_SECONDS,
    )
    assert again.returncode == 0, again.stdout + again.stderr


def test_a_world_out_of_order_ends_as_it_must(pipeline: RunningPipeline) -> None:
    """Late, twice, with a new key in between, two events never: the database holds the expected end."""
    played = command(
        pipeline,
        *("--seed", "32", "--objects", "60", "--time-factor", "50000", "--withhold", "2"),
        *("--reorder", "0.5", "--duplicates", "0.3", "--rotate-after", "12"),
        *("--check", "--check-seconds", CHECK_SECONDS),
    )
    assert played.returncode == 0, played.stdout + played.stderr
    said = json.loads(played.stdout)
    assert said["checked"] is True
    assert said["statuses"] == {"200": said["attempts"]}
    assert said["delivered"] == said["deliverable"] > 300
    assert said["withheld"] == 2
    assert said["purposes"]["duplicate"] > 50
    assert len(said["keys"]) == 2
    assert said["correlations"]["written"] > 10


def test_the_check_can_fail(pipeline: RunningPipeline) -> None:
    """A balance that is one satang off is told with both values, and ends with 1."""
    world = ("--seed", "33", "--objects", "20", "--time-factor", "200000", "--check", "--check-seconds", CHECK_SECONDS)
    assert command(pipeline, *world).returncode == 0
    with pipeline.connect() as connection:
        changed = connection.execute(
            f"UPDATE {pipeline.ready['schema']}.pg_user_balances SET balance_minor = balance_minor + 1"
        )
        assert changed.rowcount > 0
    played = command(pipeline, *world)
    assert played.returncode == 1, played.stdout + played.stderr
    assert any("balance" in sentence for sentence in json.loads(played.stdout)["sentences"])
