"""A probe: an event that was never sent before is posted, and its verdict is waited for."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tallyhook.gateway.signing import SigningKey
from tests.commands import Done, run
from tests.running import MERCHANT, RunningPipeline

EVENT = Path(__file__).parents[2] / "helm" / "tallyhook" / "files" / "probe-event.json"
PROBE_KEY = SigningKey(bytes(range(32)))
PATIENCE_SECONDS = "40"
TEST_MODE = {
    "TALLYHOOK_TOPIC_PREFIX": "tallyhook.test",
    "TALLYHOOK_SCHEMA": "tallyhook_test",
    "TALLYHOOK_LIVEMODE": "false",
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPipeline]:
    """A pipeline for live events whose door has an endpoint for probes, with a key that vouches for test events."""
    folder = tmp_path_factory.mktemp("probe")
    (folder / "keys.toml").write_text(
        f'[[key]]\nid = "probe"\npublic = "{PROBE_KEY.public_text()}"\ntest_only = true\n'
    )
    endpoints = folder / "endpoints.toml"
    endpoints.write_text('[[endpoint]]\nname = "probe"\nkeyring = "keys.toml"\nmerchant = "tallyhook-probe"\n')
    with RunningPipeline(folder / "state", TALLYHOOK_INGRESS_ENDPOINTS_FILE=str(endpoints)) as running:
        yield running


def environment(pipeline: RunningPipeline, **more: str) -> dict[str, str]:
    """What a process beside the pipeline is given."""
    ready = pipeline.ready
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    own = {
        "TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"],
        "TALLYHOOK_DATABASE_URL": ready["database_url"],
        "TALLYHOOK_SIGNING_KEY": ready["signing_key"],
    }
    return kept | own | more


def send(pipeline: RunningPipeline, folder: Path, event: object, *options: str, **more: str) -> Done:
    """Sends a probe to the door that is named by the options, else to the endpoint `default`."""
    file = folder / "event.json"
    file.write_text(json.dumps(event))
    url = () if "--url" in options else ("--url", f"{pipeline.ready['ingress_url']}/webhooks")
    return run(("send", str(file), *url, *options), environment(pipeline, **more))


def live_event(**members: object) -> dict[str, object]:
    """The probe's event as one of the pipeline's own merchant."""
    event: dict[str, object] = json.loads(EVENT.read_text())
    return event | {"livemode": True, "account": {"merchant_id": MERCHANT}, **members}


@contextmanager
def stages_for_test_events(pipeline: RunningPipeline, folder: Path) -> Iterator[None]:
    """A second installation that reads what the door puts under the prefix for test events."""
    own = environment(pipeline, **TEST_MODE, TALLYHOOK_STREAM_HEALTH_PORT="0", TALLYHOOK_SINK_HEALTH_PORT="0")
    for command in (("migrate",), ("topics", "apply")):
        done = run(command, own)
        assert done.returncode == 0, done.stderr
    processes = []
    try:
        for stage in ("stream", "sink"):
            with (folder / f"{stage}.log").open("wb") as log:
                argv = [sys.executable, "-m", "tallyhook", stage]
                processes.append(subprocess.Popen(argv, env=own, stdout=log, stderr=log, cwd=folder))
        yield
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(70) for process in processes] == [0] * len(processes)


def test_a_test_event_comes_through_to_the_installation_for_them(pipeline: RunningPipeline, tmp_path: Path) -> None:
    """As `helm test` does it: twice in a row, each time a new event; the live tables never see it."""
    key_file = tmp_path / "signing-key"
    key_file.write_text(PROBE_KEY.secret_text())
    event = json.loads(EVENT.read_text().replace("MERCHANT", "tallyhook-probe"))
    options = (
        *("--fresh", "--url", f"{pipeline.ready['ingress_url']}/webhooks/probe", "--key-file", str(key_file)),
        *("--await-verdict", PATIENCE_SECONDS),
    )
    with stages_for_test_events(pipeline, tmp_path):
        for _ in range(2):
            done = send(pipeline, tmp_path, event, *options, **TEST_MODE)
            assert done.returncode == 0, done.stdout + done.stderr
            accepted, judged = done.stdout.splitlines()
            assert accepted.split()[1] == "200"
            assert judged.split()[:2] == [accepted.split()[0], "advanced"]
    with pipeline.connect() as connection:
        found = connection.execute(
            "SELECT (SELECT count(*) FROM tallyhook_test.pg_withdrawals),"
            " (SELECT count(*) FROM tallyhook.pg_withdrawals),"
            " (SELECT count(*) FROM tallyhook_test.sequence_gaps)"
        ).fetchall()
    assert found == [(2, 0, 0)]


def test_each_delivery_is_waited_for(pipeline: RunningPipeline, tmp_path: Path) -> None:
    """Posted twice: the first one advances, the other is known; the verdicts are data, too."""
    done = send(
        pipeline,
        tmp_path,
        live_event(),
        *("--fresh", "--times", "2", "--await-verdict", PATIENCE_SECONDS, "--json"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert [answer["status"] for answer in found["answers"]] == [200, 200]
    (judged,) = found["verdicts"]
    assert judged["missing"] == 0
    assert [delivery["verdict"] for delivery in judged["deliveries"]] == ["advanced", "redelivered"]


def test_an_event_that_is_set_aside_is_no_success(pipeline: RunningPipeline, tmp_path: Path) -> None:
    """The verdict came, and it says that the event was not used."""
    done = send(
        pipeline, tmp_path, live_event(sequence=None), "--fresh", "--await-verdict", PATIENCE_SECONDS, "--id", "other"
    )
    assert done.returncode == 1
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["200", "quarantined"]


def test_a_verdict_that_does_not_come_in_time(pipeline: RunningPipeline, tmp_path: Path) -> None:
    """A test event never comes to the live installation: exit code 1, and where to look."""
    done = send(pipeline, tmp_path, live_event(livemode=False), "--fresh", "--await-verdict", "1")
    assert done.returncode == 1
    assert "no verdict of 1" in done.stdout.splitlines()[-1]


def test_without_tables_nothing_is_posted(pipeline: RunningPipeline, tmp_path: Path) -> None:
    """A schema that is not there is named before the event is sent, and so is a database that does not answer."""
    done = send(pipeline, tmp_path, live_event(), "--await-verdict", "1", TALLYHOOK_SCHEMA="nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert "schema nowhere has no tables" in done.stderr
    gone = send(
        pipeline,
        tmp_path,
        live_event(),
        *("--await-verdict", "1"),
        TALLYHOOK_DATABASE_URL="postgresql://127.0.0.1:1/x",
    )
    assert (gone.returncode, gone.stdout) == (1, "")
    assert "PostgreSQL does not answer" in gone.stderr
