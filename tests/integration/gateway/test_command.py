"""`tallyhook gateway` as a person or a program runs it: answers, exit codes, signals, the ready file."""

import asyncio
import json
import os
import signal
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tallyhook.gateway.world.generate import generate
from tests.commands import run
from tests.integration.gateway.door import Door
from tests.integration.gateway.playing import KEY, keys_file
from tests.running import await_true

PATIENCE_SECONDS = 60.0
FAST = ("--time-factor", "1000000", "--api-port", "0", "--seed", "21", "--objects", "25", "--reorder", "0")


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str


class Command:
    """A running `tallyhook gateway`; killed at the end if it still runs."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> "Command":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tallyhook", "gateway", *self._arguments),
            env=environment | {"TALLYHOOK_SIGNING_KEY": KEY.secret_text()},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    @property
    def pid(self) -> int:
        """The process."""
        assert self._process is not None
        return self._process.pid

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    async def ended(self) -> Ended:
        """Once it has ended by itself or by the signal."""
        assert self._process is not None
        out, err = await asyncio.wait_for(self._process.communicate(), PATIENCE_SECONDS)
        assert self._process.returncode is not None
        return Ended(self._process.returncode, out.decode(), err.decode())


async def test_the_answer_as_json_and_as_text(tmp_path: Path) -> None:
    """Every event accepted: exit code 0, the counts of the door."""
    world = generate(21, 25, open_ends=False)
    async with Door(keys_file(tmp_path)) as door:
        async with Command("--target", door.url, "--json", "--duplicates", "0.5", *FAST) as command:
            ended = await command.ended()
        assert ended.code == 0, ended.err
        said = json.loads(ended.out)
        assert said["delivered"] == said["deliverable"] == len(world.events)
        assert said["statuses"] == {"200": len(door.ids)}
        assert said["purposes"]["duplicate"] == len(door.ids) - len(world.events) > 0
        assert (said["pending"], said["gave_up"], said["sentences"], said["checked"]) == (0, 0, [], False)
        assert said["correlations"] is None
        async with Command("--target", door.url, *FAST) as command:
            ended = await command.ended()
    assert ended.code == 0, ended.err
    assert f"{len(world.events)} of {len(world.events)} events delivered, 0 gave up" in ended.out


async def test_an_event_that_is_never_accepted_is_named_and_ends_with_one(tmp_path: Path) -> None:
    """In text and in JSON."""
    bad = generate(21, 25, open_ends=False).events[2].id
    async with (
        Door(keys_file(tmp_path), lambda event_id, _n: 503 if event_id == bad else 200) as door,
        Command("--target", door.url, "--retry-seconds", "0,10", *FAST) as command,
    ):
        ended = await command.ended()
    assert ended.code == 1
    assert f"{bad} was never accepted" in ended.out
    assert "2 x 503" in ended.out


def ready(path: Path) -> dict[str, Any]:
    """The ready file, once it is there."""
    await_true(path.exists, PATIENCE_SECONDS, "the ready file")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


async def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    """The ready file is private and whole; the API answers after the last delivery; SIGTERM ends with 0."""
    file = tmp_path / "ready.json"
    async with (
        Door(keys_file(tmp_path)) as door,
        Command("--target", door.url, "--serve", "--ready-file", str(file), *FAST) as command,
    ):
        said = await asyncio.to_thread(ready, file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert set(said) == {"api_url", "api_key", "public_key", "pids"}
        assert (said["public_key"], said["pids"]) == (KEY.public_text(), {"gateway": command.pid})
        headers = {"Authorization": f"Bearer {said['api_key']}"}
        async with aiohttp.ClientSession(headers=headers) as session:
            finished = False
            while not finished:
                async with session.get(f"{said['api_url']}/simulator/state") as answer:
                    finished = (await answer.json())["finished"]
        command.signal(signal.SIGTERM)
        ended = await command.ended()
    assert ended.code == 0, ended.err
    assert said["api_key"] not in ended.out + ended.err
    assert not file.exists()


async def test_a_ready_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """With its path, and nothing is sent."""
    (tmp_path / "file").touch()
    wanted = tmp_path / "file" / "ready.json"
    async with (
        Door(keys_file(tmp_path)) as door,
        Command("--target", door.url, "--ready-file", str(wanted), *FAST) as command,
    ):
        ended = await command.ended()
    assert ended.code == 1
    assert "ready.json cannot be written" in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
    assert door.ids == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_in_the_middle_ends_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    """The counts are told; what is pending makes it exit code 1."""
    async with Door(keys_file(tmp_path)) as door:
        slow = ("--target", door.url, *FAST, "--time-factor", "1", "--json")
        async with Command(*slow) as command:
            await asyncio.wait_for(door.reached.wait(), PATIENCE_SECONDS)
            command.signal(number)
            ended = await command.ended()
    said = json.loads(ended.out)
    assert ended.code == 1, ended.err
    assert said["pending"] == said["deliverable"] - len(door.accepted) > 0
    assert said["sentences"] == [f"stopped before the end: {said['pending']} events were not yet accepted"]
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--objects", "0"), "--objects 0: must be 1..50000 (objects)"),
        (("--time-factor", "0.5"), "--time-factor 0.5: must be 1..1000000"),
        (("--reorder", "1.5"), "--reorder 1.5: must be 0..1"),
        (("--rotate-after", "-1"), "--rotate-after -1.0: must be 0..10000"),
        (("--rotate-after", "1"), "--rotate-after needs --keyring-file"),
        (("--retry-seconds", "0,10,5"), "rising numbers of seconds"),
        (("--retry-seconds", "10"), "--retry-seconds 10: must be like"),
        (("--scenario", "nowhere"), "no world named 'nowhere'"),
        (("--check",), "--check needs a database"),
        (("--check", "--unsubscribe", "deposit.open", "--database-url", "postgresql://h/d"), "--unsubscribe"),
        (("--database-url", "postgresql://u:hunter2%zz@h/d"), "must be a libpq URI"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_sent(arguments: tuple[str, ...], message: str) -> None:
    """Exit code 2, the option and its bounds."""
    # Were anything sent, the command would not end soon: nobody listens there.
    refused = run(
        ("gateway", "--target", "http://127.0.0.1:1/", *arguments), {"TALLYHOOK_SIGNING_KEY": KEY.secret_text()}
    )
    assert refused.returncode == 2, refused.stderr
    assert message in " ".join(refused.stderr.split())
    assert "hunter2" not in refused.stderr


def test_without_target_and_pipeline_it_says_what_to_do(tmp_path: Path) -> None:
    """Exit code 2; a file that is none is told, too."""
    refused = run(("gateway", "--state-dir", str(tmp_path)), {})
    assert refused.returncode == 2
    assert "no pipeline takes traffic" in refused.stderr
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "pipeline.json").write_text("{}")
    refused = run(("gateway", "--state-dir", str(tmp_path)), {})
    assert refused.returncode == 2
    assert "pipeline.json cannot be read" in " ".join(refused.stderr.split())


def test_a_key_is_needed() -> None:
    """With a target of one's own."""
    refused = run(("gateway", "--target", "http://127.0.0.1:1/"), {})
    assert refused.returncode == 2
    assert "no key" in refused.stderr
