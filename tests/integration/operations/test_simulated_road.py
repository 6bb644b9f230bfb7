"""The simulated gateway withholds events: gaps show them, backfill fetches them, reconcile finds nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.running import RunningPipeline, await_true

WITHHELD = 7


def command(pipeline: RunningPipeline, *arguments: str) -> tuple[int, Any]:
    """A command with the exports of the running pipeline: its exit code and its JSON."""
    exports = dict(
        line.removeprefix("export ").split("=", 1)
        for line in (pipeline.state_dir / "run" / "env").read_text().splitlines()
    )
    foreign = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    done = subprocess.run(
        [sys.executable, "-m", "tallyhook", *arguments, "--json"],
        env=foreign | exports | {"TALLYHOOK_GAPS_LOST_AFTER_HOURS": "0.0001"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_withheld_events_come_by_backfill_and_both_sides_agree(tmp_path: Path) -> None:
    """Called lost after a moment, by a setting; in the end only deposits that nobody correlated differ."""
    with RunningPipeline(
        tmp_path / "state",
        "--gateway",
        TALLYHOOK_GATEWAY_SIM_SEED="5",
        TALLYHOOK_GATEWAY_SIM_OBJECTS="40",
        TALLYHOOK_GATEWAY_SIM_WITHHOLD=str(WITHHELD),
        TALLYHOOK_GATEWAY_SIM_TIME_FACTOR="1000000",
        TALLYHOOK_GATEWAY_SIM_API_FAULT_SHARE="0.1",
    ) as pipeline:

        def nothing_is_missing() -> bool:
            return bool(command(pipeline, "gaps")[1]["open"]["numbers"] == 0)

        def listed_to_the_end() -> bool:
            _, told = command(pipeline, "backfill", "--gaps", "--dry-run")
            return bool(told["counts"] == {"would be published": WITHHELD})

        await_true(listed_to_the_end, 90, "exactly the withheld events to be missing and listed")
        code, told = command(pipeline, "gaps")
        assert (code, told["lost"]["numbers"], told["kept"]) == (1, WITHHELD, True)

        code, told = command(pipeline, "backfill", "--gaps")
        assert (code, told["counts"]) == (0, {"published": WITHHELD})
        await_true(nothing_is_missing, 60, "the gaps to close")
        assert command(pipeline, "backfill", "--gaps") == (0, {"outcomes": [], "dry_run": False, "counts": {}})

        _, told = command(pipeline, "reconcile", "--patience", "0.5")
        left = [row for row in told["differences"] if not waits_for_a_correlation(row)]
        assert left == []
        assert told["whole"] is True
        assert told["compared"]["deposit"] > 0
        assert told["compared"]["withdrawal"] > 0
        assert told["compared"]["balance_transaction"] > 0


def waits_for_a_correlation(row: dict[str, Any]) -> bool:
    """A deposit whose order the merchant's service never told; every event of it is parked."""
    return (
        row["what"] == "missing here"
        and row["kind"] == "deposit"
        and {e["verdict"] for e in row["events"]} == {"parked"}
    )
