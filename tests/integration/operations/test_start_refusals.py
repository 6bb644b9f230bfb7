"""What breaks a promise is no start: each process says which topic or schema it is, and what repairs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tallyhook.operations.stage_process import StageProcess
from tests.integration.operations.operated import PARTITIONS, Operated
from tests.integration.operations.planted import Planted
from tests.running import await_true

PATIENCE_SECONDS = 60.0
REPAIR = "tallyhook topics apply"


@pytest.fixture
def planted(still: Operated) -> Planted:
    """A clean installation, in which something is then planted."""
    return Planted(still)


def refused(planted: Planted, stage: str) -> str:
    """What a stage says that ends with 1 instead of starting."""
    ports = {f"TALLYHOOK_{name}": "0" for name in ("INGRESS_PORT", "STREAM_HEALTH_PORT")}
    ended = subprocess.run(
        [sys.executable, "-m", "tallyhook", stage],
        env=planted.shop.variables(**ports, TALLYHOOK_STREAM_DATA_DIR=str(planted.shop.folder / "streams")),
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode == 1, ended.stderr
    return ended.stderr


def waits(planted: Planted, stage: str, words: tuple[str, ...], **variables: str) -> StageProcess:
    """A stage that lives, is not ready, and says all of the words on /readyz."""
    before = planted.shop.stages.get(stage)
    if before is not None:
        before.stop()
    planted.shop.environment |= variables
    process = StageProcess(
        stage,
        [sys.executable, "-m", "tallyhook", stage],
        planted.shop.variables(),
        host="127.0.0.1",
        port_variable=f"TALLYHOOK_{stage.upper()}_HEALTH_PORT",
        choose_port=_free_port,
        log_path=planted.shop.folder / f"{stage}.log",
    )
    planted.shop.stages[stage] = process
    process.start()
    await_true(
        lambda: all(part in " ".join(process.not_ready()) for part in words),
        PATIENCE_SECONDS,
        f"{stage} to say {words}; it says {process.not_ready()}",
    )
    return process


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("config", "words"),
    [({"retention_ms": "3600000"}, "retention.ms=3600000 (1 h)"), ({"cleanup_policy": "compact"}, "compact")],
    ids=["retention", "compaction"],
)
def test_topics_that_would_lose_events(planted: Planted, config: dict[str, str], words: str) -> None:
    """Door and stream end with 1, the sink waits and goes on by itself once `topics apply` has repaired it."""
    names = planted.shop.names
    planted.configure(names.events, **config)
    for stage in ("ingress", "stream"):
        said = refused(planted, stage)
        assert all(part in said for part in (names.events, words, REPAIR)), said
    planted.configure(names.state_changes, **config)
    sink = waits(planted, "sink", (names.state_changes, words, REPAIR))
    assert planted.shop.command("topics", "apply").returncode == 0
    await_true(lambda: sink.not_ready() == [], PATIENCE_SECONDS, "the sink to go on")
    planted.configure(names.state_changes, **config)
    _reconnect(planted)
    await_true(lambda: sink.not_ready() == [], PATIENCE_SECONDS, "the sink that works to go on all the same")


def _reconnect(planted: Planted) -> None:
    """Ends the sink's sessions, so that it connects and looks at its topics anew."""
    ended = planted.shop.rows(
        "SELECT count(pg_terminate_backend(a.pid)) FROM pg_stat_activity a JOIN sink_offsets s ON s.owner_pid = a.pid"
    )
    assert ended[0][0] > 0
    log = Path(planted.shop.folder / "sink.log")
    claims = log.read_text().count('"claimed"')
    await_true(lambda: log.read_text().count('"claimed"') > claims, PATIENCE_SECONDS, "the sink to claim anew")


def test_partition_counts_that_differ(planted: Planted) -> None:
    """Between the setting and the topics, and between the topics."""
    names = planted.shop.names
    planted.grow(names.state_changes, PARTITIONS + 1)
    assert f"{names.state_changes} has {PARTITIONS + 1} partitions" in refused(planted, "stream")
    waits(planted, "sink", (f"{names.state_changes} has {PARTITIONS + 1} partitions",))
    planted.grow(names.events, PARTITIONS + 1)
    for stage in ("ingress", "stream"):
        assert f"{names.events} has {PARTITIONS + 1} partitions" in refused(planted, stage)
    waits(planted, "relay", ("partitions",), TALLYHOOK_PARTITIONS=str(PARTITIONS + 1))


@pytest.mark.parametrize(("revision", "words"), [("0001", "run `tallyhook migrate`"), ("9999", "the newer program")])
def test_a_schema_of_another_revision(planted: Planted, revision: str, words: str) -> None:
    """Sink and relay wait: a rolling upgrade brings the schema or the program within minutes."""
    planted.shop.rows("UPDATE alembic_version SET version_num = %s RETURNING 1", revision)
    for stage in ("sink", "relay"):
        waits(planted, stage, (f"stands at revision {revision}", words))
