"""`tallyhook keys`, `sign` and `send` as a user runs them, against a real door."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Message

from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tests.integration.ingress.events import event, headers_of
from tests.integration.ingress.process import IngressProcess

Records = Callable[[str], list[Message]]


def tallyhook(*arguments: str, stdin: bytes = b"", **environment: str) -> "subprocess.CompletedProcess[bytes]":
    """Runs the command with none of this process's settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    command = [sys.executable, "-m", "tallyhook", *arguments]
    return subprocess.run(command, input=stdin, env=inherited | environment, capture_output=True, timeout=60)


@pytest.fixture
def url(ingress: IngressProcess) -> str:
    """Where to post."""
    return f"http://127.0.0.1:{ingress.port}/webhooks"


@pytest.fixture
def key_file(key: SigningKey, tmp_path: Path) -> Path:
    """The gateway's secret in a file."""
    path = tmp_path / "signing_key"
    path.write_text(key.secret_text() + "\n")
    return path


def test_a_made_key_is_private_and_never_overwritten(tmp_path: Path) -> None:
    """Mode 0600; a second run refuses with exit code 2, --force replaces; the secret is not printed."""
    first = tallyhook("keys", "generate", "--out", str(tmp_path), "--json")
    secret = tmp_path / "signing_key"

    assert first.returncode == 0
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    key = SigningKey.from_text(secret.read_text())
    shown = json.loads(first.stdout)
    assert (key.public_text(), key.key_id) == (shown["public_key"], shown["key_id"])
    assert key.secret_text() not in (first.stdout + first.stderr).decode()

    again = tallyhook("keys", "generate", "--out", str(secret))
    assert (again.returncode, SigningKey.from_text(secret.read_text()).key_id) == (2, key.key_id)
    assert b"--force" in again.stderr

    assert tallyhook("keys", "generate", "--out", str(secret), "--force").returncode == 0
    assert SigningKey.from_text(secret.read_text()).key_id != key.key_id


def test_signed_headers_are_accepted(ingress: IngressProcess, key: SigningKey, tmp_path: Path) -> None:
    """What `sign` prints, one header a line, makes the file a webhook."""
    body = event("evt_s") + b"\n"
    path = tmp_path / "event.json"
    path.write_bytes(body)

    done = tallyhook("sign", str(path), TALLYHOOK_SIGNING_KEY=key.secret_text())

    assert done.returncode == 0
    headers = dict(line.split(": ", 1) for line in done.stdout.decode().splitlines())
    assert headers["webhook-id"] == "evt_s"
    assert ingress.request("POST", "/webhooks", body, headers).status == 200
    assert ingress.request("POST", "/webhooks", body + b" ", headers).status == 401


def test_a_file_is_sent_and_a_tampered_one_is_refused(
    url: str, key_file: Path, topics: TopicNames, records: Records
) -> None:
    """Exit code 0 for 2xx, 1 for anything else; the body of the answer is shown."""
    common = ("send", "-", "--url", url, "--key-file", str(key_file))

    sent = tallyhook(*common, "--times", "3", "--json", stdin=event())
    tampered = tallyhook(*common, "--tamper", stdin=event())
    old = tallyhook(*common, "--timestamp", "1", stdin=event())

    assert sent.returncode == 0, sent.stderr
    assert [(answer["id"], answer["status"]) for answer in json.loads(sent.stdout)] == [("evt_1", 200)] * 3
    assert (tampered.returncode, old.returncode) == (1, 1)
    assert b"401" in tampered.stdout
    assert len(records(topics.events)) == 3


@pytest.mark.parametrize("form", ["array", "lines"])
def test_a_scenario_is_sent_in_its_order(
    url: str, key_file: Path, topics: TopicNames, records: Records, tmp_path: Path, form: str
) -> None:
    """A JSON array or one event a line; lines go byte by byte."""
    bodies = [event(f"evt_{n}", version=n) for n in range(5)]
    scenario = tmp_path / "scenario"
    scenario.write_bytes(b"[" + b",".join(bodies) + b"]" if form == "array" else b"\n".join(bodies) + b"\n")

    done = tallyhook("send", str(scenario), "--url", url, "--key-file", str(key_file))

    assert done.returncode == 0, done.stdout + done.stderr
    found = sorted(records(topics.events), key=lambda record: record.offset() or 0)
    assert [f"evt_{n}" for n in range(5)] == [headers_of(record)["webhook-id"] for record in found]
    if form == "lines":
        assert bodies == [record.value() for record in found]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("send", "-", "--url", "ftp://x", "--key", "{key}"), 2),
        (("send", "-", "--url", "http://127.0.0.1:1/", "--key", "{key}"), 1),
        (("send", "-"), 2),
        (("send", "-", "--key", "whsk_AAAA"), 2),
        (("send", "/nowhere", "--key", "{key}"), 2),
        (("sign", "-", "--key-file", "/nowhere"), 2),
    ],
)
def test_exit_codes(arguments: tuple[str, ...], code: int, key: SigningKey) -> None:
    """1 when the answer is no, 2 for wrong usage; never a traceback, never the key."""
    filled = [argument.format(key=key.secret_text()) for argument in arguments]

    done = tallyhook(*filled, stdin=event())

    assert done.returncode == code, done.stderr
    assert b"Traceback" not in done.stderr
    assert key.secret_text().encode() not in done.stdout + done.stderr


@pytest.mark.parametrize("command", [("keys", "generate"), ("keys",), ("sign",), ("send",), ("ingress",)])
def test_every_command_explains_itself_with_an_example(command: tuple[str, ...]) -> None:
    """--help is enough to use it."""
    done = tallyhook(*command, "--help")

    assert done.returncode == 0
    assert b"Example: " in done.stdout
