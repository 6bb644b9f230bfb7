"""What is refused, how fast, and that nothing of it is published."""

import json
import random
import string
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Message

from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tests.integration.ingress.conftest import Start
from tests.integration.ingress.events import event
from tests.integration.ingress.process import IngressProcess, signed
from tests.integration.ingress.raw import connected, head, read_answer

Records = Callable[[str], list[Message]]


def test_every_forgery_has_the_same_answer_and_its_own_metric(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """A forger learns nothing: one body for all; the operator sees the reason. Nothing is published."""
    body = event()
    good = signed(ingress, body)
    stranger = SigningKey.generate().sign("evt_1", int(time.time()), body)
    forgeries: list[tuple[str, dict[str, str]]] = [
        ("id", {}),
        ("signature", stranger),
        ("signature", {n: v for n, v in good.items() if n != "webhook-signature"}),
        ("signature", good | {"webhook-signature": good["webhook-signature"][:-4]}),
        ("signature", good | {"webhook-signature": good["webhook-signature"].replace("v1a,", "v1,")}),
        ("signature", good | {"webhook-signature": " ".join([stranger["webhook-signature"]] * 17)}),
        ("id", {n: v for n, v in good.items() if n != "webhook-id"}),
        ("id", good | {"webhook-id": "x" * 513}),
        ("timestamp_malformed", {n: v for n, v in good.items() if n != "webhook-timestamp"}),
        ("timestamp_malformed", good | {"webhook-timestamp": "1e9"}),
        ("signature", good | {"webhook-timestamp": str(int(good["webhook-timestamp"]) + 1)}),
    ]

    answers = [ingress.request("POST", "/webhooks", body, headers) for _, headers in forgeries]

    assert {401} == {answer.status for answer in answers}
    assert len({answer.body for answer in answers}) == 1
    assert answers[0].headers["content-type"] == "application/problem+json"
    assert {"type", "title", "status", "detail"} == set(answers[0].json)
    for reason in {reason for reason, _ in forgeries}:
        expected = sum(1 for known, _ in forgeries if known == reason)
        assert expected == ingress.metric("tallyhook_ingress_refused_total", reason=reason), reason
    assert records(topics.events) + records(topics.dead_letters) == []
    assert ingress.post(body).status == 200
    log = json.dumps(ingress.log_lines())
    assert good["webhook-signature"] not in log
    assert "deposit_order" not in log


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_repeated_webhook_header_is_refused(ingress: IngressProcess, name: str) -> None:
    """Which of two would have been signed cannot be told."""
    body = event()
    pairs = [*signed(ingress, body).items(), ("content-length", str(len(body)))]
    pairs.append((name.upper(), dict(pairs)[name]))

    with connected(ingress.port) as connection:
        connection.sendall(head("/webhooks", pairs) + body)
        assert read_answer(connection)[0] == 401


def test_bytes_that_are_no_text_in_the_signature_are_refused_quietly(
    ingress: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """No traceback, one refusal with reason signature, and the next good request is accepted."""
    body = event()
    good = signed(ingress, body)
    value = "v1a,\xe9\xff" + good["webhook-signature"].removeprefix("v1a,")

    with connected(ingress.port) as connection:
        length = {"content-length": str(len(body))}
        connection.sendall(head("/webhooks", good | length | {"webhook-signature": value}) + body)
        assert read_answer(connection)[0] == 401
        connection.sendall(head("/webhooks", good | length) + body)
        assert read_answer(connection)[0] == 200

    assert ingress.metric("tallyhook_ingress_refused_total", reason="signature") == 1
    assert len(records(topics.events)) == 1
    assert not [line for line in ingress.log_lines() if line["level"] in ("error", "critical") or "exception" in line]


@pytest.mark.parametrize(
    ("tolerance_seconds", "offset_seconds", "status"),
    [
        (300, 600, 401),
        (300, -600, 401),
        (300, 240, 200),
        (345_600, -91 * 3600, 200),
        (345_600, -97 * 3600, 401),
    ],
)
def test_the_age_of_an_authentic_request_has_its_own_reason(
    topics: TopicNames, start: Start, tolerance_seconds: int, offset_seconds: int, status: int
) -> None:
    """The tolerance is a setting, because some gateways stamp the event and not the attempt."""
    ingress = start(TALLYHOOK_INGRESS_TOLERANCE_SECONDS=str(tolerance_seconds))

    assert status == ingress.post(event(), timestamp=int(time.time()) + offset_seconds).status

    refused = ingress.metric("tallyhook_ingress_refused_total", reason="timestamp")
    assert (1 if status == 401 else 0) == refused


def test_the_table_of_answers(ingress: IngressProcess) -> None:
    """404, 405 with Allow, 415, 413; each as problem+json."""
    body = event()
    good = signed(ingress, body)

    cases = [
        (ingress.request("POST", "/webhooks/other", body, good), 404),
        (ingress.request("POST", "/webhooks/default/", body, good), 404),
        (ingress.request("POST", "/", body, good), 404),
        (ingress.request("GET", "/webhooks"), 405),
        (ingress.request("PUT", "/webhooks/default", body, good), 405),
        (ingress.request("POST", "/livez", b""), 405),
        (ingress.request("POST", "/webhooks", body, good | {"content-encoding": "gzip"}), 415),
        (ingress.request("POST", "/webhooks", b"x" * 262_145, good), 413),
    ]

    assert [status for _, status in cases] == [answer.status for answer, _ in cases]
    assert {"application/problem+json"} == {answer.headers["content-type"] for answer, _ in cases}
    assert cases[3][0].headers["allow"] == "POST"
    assert cases[5][0].headers["allow"] == "GET, HEAD"
    assert ingress.request("POST", "/webhooks/default?x=1", body, good).status == 200


def test_senders_cannot_make_series_grow(ingress: IngressProcess) -> None:
    """Paths, methods, types and statuses are the sender's: none of them becomes a label."""
    chance = random.Random(1)
    before = ingress.request("GET", "/metrics").body.count(b"\n")

    def word(length: int = 8) -> str:
        return "".join(chance.choices(string.ascii_lowercase, k=length))

    for _ in range(200):
        assert ingress.request("POST", f"/{word()}", b"x").status == 404
        assert ingress.request(word().upper(), "/webhooks").status == 405
        entity = {"status": word()}
        answer = ingress.post(event(word(), word(), entity=entity, type=word()), message_id=word())
        assert answer.status == 200

    assert ingress.request("GET", "/metrics").body.count(b"\n") - before <= 10


def test_refusals_cannot_flood_the_log(ingress: IngressProcess) -> None:
    """Above some lines a second they are counted only, and the metric has them all."""
    with connected(ingress.port) as connection:
        for _ in range(20):
            connection.sendall(head("/x", {}, "GET") * 20)
            answers = b""
            while answers.count(b"HTTP/1.1 404") < 20:
                answers += connection.recv(65536)

    assert ingress.metric("tallyhook_ingress_refused_total", reason="not_found") == 400
    assert len([line for line in ingress.log_lines() if line["event"] == "refused"]) < 200


def test_more_requests_than_allowed_at_once_are_told_to_come_again(topics: TopicNames, start: Start) -> None:
    """The bound is on requests whose head was read; the body longest on its way gives its place to a new one."""
    ingress = start(TALLYHOOK_INGRESS_MAX_IN_FLIGHT="2")
    with connected(ingress.port) as first, connected(ingress.port) as second:
        for connection in (first, second):
            connection.sendall(head("/webhooks", {"content-length": "10", "expect": "100-continue"}))
            assert b"100 Continue" in connection.recv(1000)
        assert ingress.post(event()).status == 200
        status, headers, _ = read_answer(first)
        assert (status, int(headers["retry-after"]) > 0) == (503, True)
        second.sendall(b"0123456789")
        assert read_answer(second)[0] == 401
    assert ingress.metric("tallyhook_ingress_refused_total", reason="in_flight") == 1


def test_keys_change_behind_a_link_without_a_restart(
    topics: TopicNames, start: Start, key: SigningKey, tmp_path: Path
) -> None:
    """As Kubernetes mounts secrets: a link to a folder is swapped. A half-written file keeps the old keys."""
    base, new = tmp_path, SigningKey.generate()
    contents = {
        "one": f"old={key.public_text()}\n",
        "two": f"# rotation\nold={key.public_text()}\nnew={new.public_text()}\n",
        "half": f"old={key.public_text()}\nnew={new.public_text()[:20]}",
    }
    for name, content in contents.items():
        (base / name).mkdir()
        (base / name / "keys").write_text(content)

    def link_to(name: str) -> None:
        (base / "next").symlink_to(base / name)
        (base / "next").replace(base / "current")

    def await_status(signer: SigningKey, status: int) -> None:
        deadline = time.monotonic() + 20
        while ingress.post(event(), key=signer).status != status:
            assert time.monotonic() < deadline

    link_to("one")
    ingress = start(
        TALLYHOOK_INGRESS_PUBLIC_KEYS="",
        TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE=str(base / "current" / "keys"),
        TALLYHOOK_INGRESS_KEY_RELOAD_SECONDS="0.2",
    )
    assert ingress.post(event(), key=new).status == 401
    link_to("two")
    await_status(new, 200)
    assert ingress.post(event()).status == 200
    link_to("half")
    ingress.await_log("the keys stay as they were")
    assert [ingress.post(event(), key=signer).status for signer in (key, new)] == [200, 200]
    assert ingress.metric("tallyhook_ingress_key_reloads_total", outcome="failed") == 1
    link_to("one")
    await_status(new, 401)
    assert ingress.post(event()).status == 200
