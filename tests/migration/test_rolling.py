"""An upgrade under traffic: programs of two releases side by side, no stop, and each refuses what it cannot bear."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.relay.effect_reader import sent
from tests.integration.relay.relay_process import RelayProcess, settings_of
from tests.integration.relay.waiting import eventually
from tests.integration.sinks.balances import applied, lives, sound
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.running import Running, until

ROOT = Path(__file__).parents[2]
THIS, NEXT = ("-m", "tallyhook"), ("-m", "tests.migration.next_release")
LIVES_EACH = 20


@pytest.mark.timeout(300)
def test_a_rolling_upgrade_under_traffic(road: Road, stage: Running, tmp_path: Path) -> None:
    """pre, both releases at once, post: the sinks never stand still, effects leave once, and the audit is clean."""
    old = stage.worker(program=(*THIS, "sink"))
    relay = RelayProcess(stage.settings, tmp_path / "relay.log", program=(*THIS, "relay"))
    early = stage.worker(program=(*NEXT, "sink"), PYTHONPATH=str(ROOT))
    told = "stands at revision 0003, this program needs 0004: run `tallyhook migrate`"
    until(lambda: told in early.reasons(), stage.workers)
    until(lambda: not old.reasons(), stage.workers)
    with _traffic(road, stage) as published:
        _moves_on(road, stage)
        assert _command(stage, NEXT, "migrate", "--phase", "pre", "--json")["after"] == "0004"
        # The program that came too early goes on by itself, the older one never stopped.
        until(lambda: not early.reasons(), stage.workers)
        assert not old.reasons()
        until(lambda: early.metric("tallyhook_sink_verdicts_total") > 0, stage.workers)
        _moves_on(road, stage)

        # An older program that starts now may stay; both doctors say that an upgrade is on its way.
        again = stage.worker(program=(*THIS, "sink"))
        until(lambda: not again.reasons(), stage.workers)
        assert "schema_newer" in _findings(stage, THIS)
        assert "schema_pending" in _findings(stage, NEXT)
        assert old.end() == 0
        assert again.end() == 0
        newer = RelayProcess(stage.settings, tmp_path / "newer.log", program=(*NEXT, "relay"), PYTHONPATH=str(ROOT))
        eventually("the newer relay stands by", lambda: newer.status("/readyz") == (200, []))
        assert relay.stop() == 0
        newer.await_active()

        assert _command(stage, NEXT, "migrate", "--phase", "post", "--json")["after"] == "0005"
        _moves_on(road, stage)
        late = stage.worker(program=(*THIS, "sink"))
        told = "needs programs of revision 0004 or newer; this one knows 0003: deploy the newer program"
        until(lambda: told in late.reasons(), stage.workers)
        assert not early.reasons()
    total = published()
    until(lambda: applied(road) == 2 * total, stage.workers)
    sound(road, total)
    keys = {row[0] for row in road.rows("SELECT dedupe_key FROM pg_outbox")}
    eventually("every effect left", lambda: sent(stage.settings.kafka, stage.names).keys() == keys)
    report = _command(stage, NEXT, "audit", "--json")
    assert [example["text"] for check in report["checks"] for example in check["examples"]] == []
    assert newer.stop() == 0


@contextmanager
def _traffic(road: Road, stage: Running) -> Iterator[Any]:
    """Deposits all the time; what is given tells how many there were, once it has ended."""
    ended, count = threading.Event(), [0]

    def publish() -> None:
        while not ended.wait(0.25):
            stage.publish(*lives(road, LIVES_EACH, count[0]))
            count[0] += LIVES_EACH

    thread = threading.Thread(target=publish, name="traffic", daemon=True)
    thread.start()
    try:
        yield lambda: count[0]
    finally:
        ended.set()
        thread.join(60)
        assert not thread.is_alive()


def _moves_on(road: Road, stage: Running) -> None:
    before = applied(road)
    until(lambda: applied(road) > before + LIVES_EACH, stage.workers)


def _command(stage: Running, program: tuple[str, ...], *arguments: str, code: int = 0) -> Mapping[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    own = settings_of(stage.settings) | {"PYTHONPATH": str(ROOT), "TALLYHOOK_INGRESS_MERCHANT_ID": "mer_1"}
    done = subprocess.run(
        [sys.executable, *program, *arguments], env=kept | own, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    found: Mapping[str, Any] = json.loads(done.stdout)
    return found


def _findings(stage: Running, program: tuple[str, ...]) -> set[str]:
    return {finding["id"] for finding in _command(stage, program, "doctor", "--json")["findings"]}
