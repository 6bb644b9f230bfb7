"""Start, end, and a Kafka that does not answer."""

import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Message

from schemas.topics import TopicNames
from tallyhook.errors import KafkaUnavailable
from tallyhook.local.stack import LocalStack
from tests.integration.ingress.conftest import Start
from tests.integration.ingress.events import event, headers_of
from tests.integration.ingress.freezing import frozen
from tests.integration.ingress.process import IngressProcess
from tests.integration.ingress.raw import connected, ended, head, read_answer

Records = Callable[[str], list[Message]]


def slow_post(ingress: IngressProcess, number: int, half_sent: threading.Barrier, go_on: threading.Event) -> int:
    """Sends half of an event, waits for leave, sends the rest; the status."""
    body = event(f"evt_{number}", f"dep_{number}")
    headers = ingress.key.sign(f"evt_{number}", int(time.time()), body) | {"content-length": str(len(body))}
    with connected(ingress.port) as connection:
        connection.sendall(head("/webhooks", headers) + body[:50])
        half_sent.wait(30)
        assert go_on.wait(30)
        connection.sendall(body[50:])
        return read_answer(connection)[0]


def test_sigterm_answers_everyone_who_had_begun(topics: TopicNames, start: Start, records: Records) -> None:
    """`/readyz` says 503 first; half-sent requests are answered; each 200 is in the topic; exit 0; a second
    SIGTERM changes nothing."""
    ingress = start(TALLYHOOK_INGRESS_ANNOUNCE_SECONDS="2")
    senders = 50
    half_sent, go_on = threading.Barrier(senders + 1), threading.Event()
    with ThreadPoolExecutor(senders) as pool:
        posts = [pool.submit(slow_post, ingress, number, half_sent, go_on) for number in range(senders)]
        half_sent.wait(30)
        with connected(ingress.port) as idle:
            ingress.terminate()
            answer = ingress.await_ready(503, seconds=2)
            assert "shutting down" in answer.json["reasons"]
            assert answer.headers["connection"] == "close"
            assert ended(idle)
        ingress.terminate()
        await_refused(ingress.port)
        go_on.set()
        statuses = [post.result(30) for post in posts]

    assert ingress.wait() == 0
    assert [200] * senders == statuses
    assert {f"dep_{n}".encode() for n in range(senders)} == {record.key() for record in records(topics.events)}
    assert ingress.await_log("stopped")["connections_cut"] == 0


def await_refused(port: int) -> None:
    """Waits until the port takes no connection."""
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_sender_that_never_ends_its_body_cannot_hold_the_process(topics: TopicNames, start: Start) -> None:
    """What is not whole when the grace is over is answered 503, and the process ends in time."""
    ingress = start(TALLYHOOK_INGRESS_SHUTDOWN_SECONDS="3", TALLYHOOK_INGRESS_BODY_TIMEOUT_SECONDS="60")
    with connected(ingress.port) as connection:
        connection.sendall(head("/webhooks", {"content-length": "100", "expect": "100-continue"}))
        assert b"100 Continue" in connection.recv(1000)
        began = time.monotonic()
        ingress.terminate()
        status, headers, _ = read_answer(connection)
        assert (status, headers["connection"]) == (503, "close")
    assert ingress.wait(10) == 0
    assert time.monotonic() - began < 8


def test_kill_9_leaves_nothing_behind(topics: TopicNames, start: Start, records: Records) -> None:
    """One process serves: once it is gone nobody listens, and every 200 before is in the topic."""
    ingress = start()
    accepted: list[str] = []

    def send(sender: int) -> None:
        for number in range(10_000):
            event_id = f"evt_{sender}_{number}"
            try:
                if ingress.post(event(event_id, f"dep_{sender}"), message_id=event_id).status == 200:
                    accepted.append(event_id)
            except OSError:
                return

    with ThreadPoolExecutor(8) as pool:
        for sender in range(8):
            pool.submit(send, sender)
        deadline = time.monotonic() + 30
        while len(accepted) < 100:
            assert time.monotonic() < deadline
        ingress.process.send_signal(signal.SIGKILL)

    assert ingress.wait() == -signal.SIGKILL
    await_refused(ingress.port)
    assert set(accepted) <= {headers_of(record)["ce_id"] for record in records(topics.events)}


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("TALLYHOOK_INGRESS_PUBLIC_KEYS", "", "TALLYHOOK_INGRESS_PUBLIC_KEYS"),
        ("TALLYHOOK_INGRESS_PUBLIC_KEYS", "whpk_AAAA", "32 bytes"),
        ("TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE", "/nowhere/keys", "/nowhere/keys"),
        ("TALLYHOOK_KAFKA_BOOTSTRAP", "", "TALLYHOOK_KAFKA_BOOTSTRAP"),
    ],
)
def test_wrong_settings_end_the_process_at_once(start: Start, setting: str, value: str, named: str) -> None:
    """Exit code 2, and the message names the variable or what is wrong with it."""
    ingress = start(ready=False, **{setting: value})

    assert ingress.wait() == 2
    assert named in ingress.await_log("ended")["reason"]


def test_without_kafka_it_lives_and_tells_why_it_is_not_ready(start: Start) -> None:
    """No restart loop while the brokers are away: /livez 200, /readyz 503 with the reason, webhooks 503."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ingress = start(ready=False, TALLYHOOK_KAFKA_BOOTSTRAP=f"127.0.0.1:{taken.getsockname()[1]}")
        ingress.port = int(ingress.await_log("listening")["port"])

        assert ingress.request("GET", "/livez").status == 200
        assert ingress.await_ready(503).json["reasons"]
        answer = ingress.post(event())
        assert (answer.status, int(answer.headers["retry-after"]) > 0) == (503, True)
        ingress.terminate()
        assert ingress.wait() == 0


def records_when_led(records: Records, topic: str) -> list[Message]:
    """Every record, once each partition has its leader again: a broker that was away is registered anew."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return records(topic)
        except KafkaUnavailable:
            assert time.monotonic() < deadline
            time.sleep(0.1)


@pytest.mark.chaos
def test_a_frozen_broker_is_answered_503_and_comes_back(
    topics: TopicNames, start: Start, records: Records, local_stack: LocalStack
) -> None:
    """While the broker does not confirm nobody hears 200; afterwards it goes on by itself, in order, twice."""
    pid = local_stack.kafka.pid
    if pid is None:
        pytest.skip("the broker's process is not ours to stop (TALLYHOOK_KAFKA_BOOTSTRAP is set)")
    ingress = start(TALLYHOOK_INGRESS_DELIVERY_TIMEOUT_SECONDS="3")
    accepted: list[tuple[int, int]] = []

    def send(sender: int) -> int:
        event_id = f"evt_{sender}_{len(accepted)}_{time.monotonic_ns()}"
        version = time.monotonic_ns()
        status = ingress.post(event(event_id, f"dep_{sender}", version=version), message_id=event_id)
        if status.status == 200:
            accepted.append((sender, version))
        else:
            assert int(status.headers["retry-after"]) > 0
        return status.status

    with ThreadPoolExecutor(40) as pool:
        for _ in range(2):
            assert {200} == set(pool.map(send, range(20)))
            with frozen(pid):
                began = time.monotonic()
                assert {503} == set(pool.map(send, range(40)))
                assert time.monotonic() - began < 10
                reasons = ingress.await_ready(503, seconds=10).json["reasons"]
                assert "Kafka" in " ".join(reasons)
                assert ingress.request("GET", "/livez").status == 200
            deadline = time.monotonic() + 30
            while send(0) != 200:
                assert time.monotonic() < deadline
            ingress.await_ready(200, seconds=30)

    stored: dict[int, list[int]] = {}
    for record in sorted(records_when_led(records, topics.events), key=lambda r: (r.partition() or 0, r.offset() or 0)):
        headers = headers_of(record)
        stored.setdefault(int(headers["ce_subject"].removeprefix("dep_")), []).append(int(headers["ce_version"]))
    assert all(versions == sorted(versions) for versions in stored.values())
    assert all(version in stored[sender] for sender, version in accepted)
    ingress.terminate()
    assert ingress.wait() == 0
