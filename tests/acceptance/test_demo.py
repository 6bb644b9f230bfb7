"""`tallyhook demo`, both acts, on the run's own Kafka and PostgreSQL."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import typer
from psycopg import sql

from tallyhook.cli import demo
from tallyhook.kafka import admin
from tallyhook.operations.demo_day_story import EXPECTED, SEED
from tallyhook.settings import KafkaSettings, load
from tests.unit.packaging.tree import ROOT

STAGE_PORTS = ("INGRESS_PORT", "STREAM_HEALTH_PORT", "SINK_HEALTH_PORT", "RELAY_HEALTH_PORT")


@pytest.fixture
def environment(kafka_bootstrap: str, database_url: str) -> Iterator[dict[str, str]]:
    """Our variables for a demo on given servers; its topics and its schema are removed afterwards."""
    ports = {f"TALLYHOOK_{name}": "0" for name in STAGE_PORTS}
    yield ports | {"TALLYHOOK_KAFKA_BOOTSTRAP": kafka_bootstrap, "TALLYHOOK_DATABASE_URL": database_url}
    client = admin(KafkaSettings(bootstrap=kafka_bootstrap))
    left = [topic for topic in client.list_topics(timeout=10).topics if topic.startswith("demo_")]
    for outcome in client.delete_topics(left, operation_timeout=10).values() if left else ():
        outcome.result(10)
    with psycopg.connect(database_url, autocommit=True, connect_timeout=10) as connection:
        for (schema,) in connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'demo\\_%'"):
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def test_both_acts_come_out_as_they_were_written_down(environment: dict[str, str], tmp_path: Path) -> None:
    """Exit code 0; gap, effects, refund and pages are shown; nothing is left behind."""
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    played = subprocess.run(
        [sys.executable, "-m", "tallyhook", "demo", "--state-dir", str(tmp_path / "state")],
        env=foreign | environment,
        capture_output=True,
        text=True,
        timeout=150,
    )
    shown = played.stdout
    assert played.returncode == 0, shown + played.stderr
    assert "All as expected: A's late expiry changed nothing" in shown
    assert f"posted 62 webhooks of 52 events, shuffled by seed {SEED}" in shown
    assert "answers: 62 x 200" in shown
    first, second = shown.split("$ tallyhook backfill --gaps")
    assert "missing: 1 number in 1 range" in first
    assert "nothing is missing" in second
    assert "30,803 satang go back" in shown
    assert "71,872 stay debited" in shown
    # Thai time beside UTC, in one line.
    assert any("10:53  +400.00 บาท" in line and "03:53 +400.00 THB" in line for line in shown.splitlines())
    assert "All as expected: the gap is closed" in shown
    assert list((tmp_path / "state").iterdir()) == []
    printed = set(comparable(shown))
    for document in (ROOT / "docs" / "demo.md", ROOT / "README.md"):
        assert [line for line in transcript(document) if line not in printed] == []


def transcript(document: Path) -> list[str]:
    """What a document says that the second act prints: its block with the backfill."""
    blocks = re.findall(r"^```\n(.*?)^```$", document.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if "$ tallyhook backfill" in block]
    return [line for line in comparable(block) if line != "[...]"]


def comparable(text: str) -> list[str]:
    """Its lines without what differs from run to run."""
    text = re.sub(r"127\.0\.0\.1:\d+", "ADDRESS", re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "MOMENT", text))
    text = re.sub(r"played in .*", "played", text)
    return [line.rstrip() for line in text.splitlines()]


def test_a_figure_that_differs_ends_the_demo_with_one(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Were one satang more debited than is written down, the demo would say so and keep its folder."""
    for name in [name for name in os.environ if name.startswith("TALLYHOOK_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    effects = tuple(
        replace(effect, payload={**effect.payload, "debited_minor": 71_871})
        if effect.effect == "refund_unfilled"
        else effect
        for effect in EXPECTED.effects
    )
    with pytest.raises(typer.Exit) as ended:
        demo.run(load(), tmp_path / "state", replace(EXPECTED, effects=effects), linger=None)
    shown = capsys.readouterr().out
    assert ended.value.exit_code == 1
    assert "This is NOT what must come of it:" in shown
    (missing,) = [line for line in shown.splitlines() if "effect missing:" in line]
    assert "refund_unfilled" in missing
    assert '"debited_minor": 71871' in missing
    assert (tmp_path / "state").exists()
    (kept,) = (tmp_path / "state").iterdir()
    assert (kept / "logs").is_dir()
