"""`tallyhook up` as a merchant's engineer uses it: start, send, explain, stop, go on."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.running import MERCHANT, RunningPipeline, await_true

READY_MEMBERS = {
    "ingress_url",
    "console_url",
    "gateway_url",
    "database_url",
    "kafka_bootstrap",
    "topic_prefix",
    "schema",
    "signing_key",
    "metrics_urls",
    "pids",
}


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPipeline]:
    """One running pipeline for the tests of this file."""
    with RunningPipeline(tmp_path_factory.mktemp("up") / "state") as running:
        yield running


def tallyhook(pipeline: RunningPipeline, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command against the running pipeline."""
    ready = pipeline.ready
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    environment |= {
        "TALLYHOOK_KAFKA_BOOTSTRAP": ready["kafka_bootstrap"],
        "TALLYHOOK_DATABASE_URL": ready["database_url"],
        "TALLYHOOK_SIGNING_KEY": ready["signing_key"],
    }
    return subprocess.run(
        [sys.executable, "-m", "tallyhook", *arguments], env=environment, capture_output=True, text=True, timeout=60
    )


def deposit(event_id: str, version: int, status: str) -> str:
    """An event of one deposit."""
    return json.dumps(
        {
            "id": event_id,
            "object": "event",
            "type": f"deposit.{status}",
            "livemode": True,
            "created_at": "2026-03-02T10:04:41Z",
            "sequence": version,
            "account": {"merchant_id": MERCHANT},
            "data": {"object": {"id": "dep_up", "object": "deposit_order", "version": version, "status": status}},
        }
    )


def send(pipeline: RunningPipeline, folder: Path, event_id: str, version: int, status: str) -> None:
    """Signs and posts an event with the command; expects 200."""
    file = folder / f"{event_id}.json"
    file.write_text(deposit(event_id, version, status))
    sent = tallyhook(pipeline, "send", str(file), "--url", f"{pipeline.ready['ingress_url']}/webhooks")
    assert sent.returncode == 0, sent.stdout + sent.stderr


def explained(pipeline: RunningPipeline, event_id: str, deliveries: int) -> dict[str, Any]:
    """What `explain --json` says once that many deliveries were judged."""
    found: dict[str, Any] = {}

    def judged() -> bool:
        answer = tallyhook(pipeline, "explain", event_id, "--json")
        if answer.returncode == 0:
            found.update(json.loads(answer.stdout))
        return len(found.get("deliveries", [])) >= deliveries

    await_true(judged, 30, f"{deliveries} judged deliveries of {event_id}")
    return found


def correlate(pipeline: RunningPipeline) -> None:
    """What the merchant's own service writes."""
    with pipeline.connect() as connection:
        connection.execute(
            f"INSERT INTO {pipeline.ready['schema']}.pg_deposit_correlations VALUES ('dep_up', 'ref', 'ord', 'usr')"
            " ON CONFLICT DO NOTHING"
        )


def test_the_ready_file_is_private_and_whole(pipeline: RunningPipeline) -> None:
    """Mode 0600, every member there, absent parts null, every pid alive."""
    assert stat.S_IMODE(pipeline.ready_file.stat().st_mode) == 0o600
    ready = pipeline.ready
    assert set(ready) == READY_MEMBERS
    assert ready["console_url"] is None
    assert ready["gateway_url"] is None
    assert ready["signing_key"].startswith("whsk_")
    for pid in ready["pids"].values():
        os.kill(pid, 0)


def test_a_second_up_on_the_same_folder_says_so(pipeline: RunningPipeline) -> None:
    """It names the process that holds the folder, and disturbs nothing."""
    refused = subprocess.run(
        [sys.executable, "-m", "tallyhook", "up", "--state-dir", str(pipeline.state_dir)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert refused.returncode == 1
    assert pipeline.process is not None
    assert str(pipeline.process.pid) in refused.stderr
    assert all(pipeline.answers(unit) for unit in pipeline.ready["pids"])


def test_explain_tells_each_delivery_and_why(pipeline: RunningPipeline, tmp_path: Path) -> None:
    """First delivery, redelivery, a late event, an unknown one; in English and Thai."""
    correlate(pipeline)
    send(pipeline, tmp_path, "evt_up_5", 5, "slip_received")
    send(pipeline, tmp_path, "evt_up_5", 5, "slip_received")
    send(pipeline, tmp_path, "evt_up_3", 3, "open")
    first = explained(pipeline, "evt_up_5", 2)
    assert [delivery["verdict"] for delivery in first["deliveries"]] == ["advanced", "redelivered"]
    assert [effect["dedupe_key"] for effect in first["effects"]] == ["evt_up_5:update_order_status"]
    late = explained(pipeline, "evt_up_3", 1)
    assert [(d["verdict"], d["reason"]) for d in late["deliveries"]] == [("late", "older_version")]
    assert late["effects"] == []
    in_thai = tallyhook(pipeline, "explain", "evt_up_3", "--lang", "th")
    assert "มี version นี้หรือใหม่กว่าแล้ว" in in_thai.stdout
    unknown = tallyhook(pipeline, "explain", "evt_nowhere")
    assert unknown.returncode == 1
    assert "evt_nowhere" in unknown.stderr


def test_topics_are_as_they_must_be(pipeline: RunningPipeline) -> None:
    """`topics show` ends with 0 and names ids and counts."""
    shown = tallyhook(pipeline, "topics", "show", "--json")
    assert shown.returncode == 0, shown.stderr
    statuses = json.loads(shown.stdout)
    assert {status["partitions"] for status in statuses} == {8}
    assert all(status["topic_id"] for status in statuses)
    other = subprocess.run(
        [sys.executable, "-m", "tallyhook", "topics", "show"],
        env=os.environ | {"TALLYHOOK_KAFKA_BOOTSTRAP": pipeline.ready["kafka_bootstrap"], "TALLYHOOK_PARTITIONS": "16"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert other.returncode == 1
    assert "has 8 partitions, the installation has 16" in " ".join(other.stdout.split())


def test_a_second_start_goes_on_where_the_first_one_was(pipeline: RunningPipeline, tmp_path: Path) -> None:
    """After a clean stop and a new start the old event is known, and a repeat of it is a redelivery."""
    correlate(pipeline)
    send(pipeline, tmp_path, "evt_up_9", 9, "under_review")
    explained(pipeline, "evt_up_9", 1)
    addresses = {name: pipeline.ready[name] for name in ("kafka_bootstrap", "database_url", "signing_key")}
    pipeline.stop()
    pipeline.start()
    assert {name: pipeline.ready[name] for name in addresses} == addresses
    send(pipeline, tmp_path, "evt_up_9", 9, "under_review")
    again = explained(pipeline, "evt_up_9", 2)
    assert [delivery["verdict"] for delivery in again["deliveries"]] == ["advanced", "redelivered"]
    assert [effect["dedupe_key"] for effect in again["effects"]] == ["evt_up_9:show_pending_review"]
