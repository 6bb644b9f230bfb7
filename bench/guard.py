"""The guard's throughput: the product's worker against the plain Faust agent, on the same events, in the same run.

Usage: python -m bench.guard BOOTSTRAP [EVENTS]; `tallyhook bench guard` does the same.
"""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from schemas.headers import EventHeaders
from schemas.topics import TopicNames
from tallyhook.errors import TallyhookError
from tallyhook.kafka import admin, plain_reader, producer
from tallyhook.settings import KafkaSettings

PARTITIONS = 8
ROUNDS = 3
OBJECTS = 5000
BODY_BYTES = 900
ROUND_SECONDS = 240.0
LOOK_SECONDS = 0.1
STOP_SECONDS = 30.0
PRODUCT = "import sys; from streams.app import run; from tallyhook.settings import load; sys.exit(run(load()))"


@dataclass(frozen=True, slots=True)
class GuardResult:
    """Events a second, medians over the rounds, and how many times the product does of what the plain agent does."""

    product_events_per_second: float
    naive_events_per_second: float
    product_rounds: tuple[float, ...]
    naive_rounds: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Product over plain agent."""
        return self.product_events_per_second / self.naive_events_per_second


def run(kafka: KafkaSettings, events: int, report: Callable[[str], None], rounds: int = ROUNDS) -> GuardResult:
    """Measures both, round by round in turns, each on fresh topics; raises TallyhookError when one does not finish.

    Args:
        kafka: the broker; its topics of this run are removed again.
        events: how many a round; 20,000 or more give steady figures.
        report: takes a line of text as the run goes on, the table at the end.
        rounds: how often each is measured.
    """
    rates: dict[str, list[float]] = {"product": [], "naive": []}
    for number in range(1, rounds + 1):
        for name, found in rates.items():
            found.append(_measure(kafka, name, events))
            report(f"round {number} of {rounds}, {name}: {found[-1]:,.0f} events/s")
    result = GuardResult(
        statistics.median(rates["product"]),
        statistics.median(rates["naive"]),
        tuple(rates["product"]),
        tuple(rates["naive"]),
    )
    report(f"{'events/s':<10}{'min':>10}{'median':>10}{'max':>10}")
    for name, found in rates.items():
        report(f"{name:<10}{min(found):>10,.0f}{statistics.median(found):>10,.0f}{max(found):>10,.0f}")
    report(f"ratio {result.ratio:.1f} ({events:,} events of {BODY_BYTES} bytes a round, {PARTITIONS} partitions)")
    return result


def _measure(kafka: KafkaSettings, name: str, events: int) -> float:
    prefix = f"bench-{name}-{uuid.uuid4().hex[:8]}"
    names, client = TopicNames(prefix), admin(kafka)
    topics = [names.events, names.state_changes, names.dead_letters]
    for future in client.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
        future.result(timeout=30)
    try:
        _fill(kafka, names.events, events)
        with tempfile.TemporaryDirectory() as folder:
            return _time(kafka, _command(kafka, name, prefix, Path(folder)), Path(folder), names.state_changes, events)
    finally:
        _remove(client, prefix)


def _fill(kafka: KafkaSettings, topic: str, events: int) -> None:
    """Writes the events: objects in random turns, versions rising, every tenth delivery one that came before."""
    client = producer(kafka, linger_ms=20, delivery_timeout_seconds=60, on_fatal=_fail)
    chance, versions = random.Random(7), dict.fromkeys(range(OBJECTS), 0)
    for number in range(events):
        which = chance.randrange(OBJECTS)
        if not versions[which] or chance.random() > 0.1:
            versions[which] += 1
        key = f"dep_{which:08d}"
        headers = EventHeaders(
            id=f"evt_{number:010d}", type="deposit.settled", source="/gateway", subject=key,
            time="2026-01-01T00:00:00.000Z", object_kind="deposit_order", status="settled", version=versions[which],
            merchant="mrc_bench", sequence=number, livemode=True, received_at="2026-01-01T00:00:00.000Z",
            origin="webhook", key_id="bench",
        ).encode()  # fmt: skip
        body = json.dumps({"id": f"evt_{number:010d}", "data": {"object": {"id": key}}, "fill": ""})
        value = body[:-2] + "x" * (BODY_BYTES - len(body)) + body[-2:]
        while True:
            try:
                client.produce(topic, key=key, value=value, headers=headers)
                break
            except BufferError:
                client.poll(0.1)
    if client.flush(60):
        raise TallyhookError(f"{topic} did not take all events within a minute; is the broker busy?")


def _fail(error: object) -> None:
    raise TallyhookError(f"the bench cannot write its events: {error}")


def _command(kafka: KafkaSettings, name: str, prefix: str, folder: Path) -> Sequence[str]:
    if name == "product":
        return [sys.executable, "-c", PRODUCT]
    return [sys.executable, "-m", "bench.naive_agent", str(kafka.bootstrap), prefix, str(PARTITIONS), str(folder)]


def _time(kafka: KafkaSettings, command: Sequence[str], folder: Path, topic: str, events: int) -> float:
    """Events a second from the first output seen to the last; start and recovery are left out."""
    prefix = topic.removesuffix(".state-changes")
    environment = os.environ | {
        "TALLYHOOK_KAFKA_BOOTSTRAP": str(kafka.bootstrap),
        "TALLYHOOK_TOPIC_PREFIX": prefix,
        "TALLYHOOK_PARTITIONS": str(PARTITIONS),
        "TALLYHOOK_STREAM_HEALTH_PORT": "0",
        "TALLYHOOK_STREAM_DATA_DIR": str(folder),
    }
    log = folder / "worker.log"
    with log.open("wb") as output:
        worker = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    deadline, first = time.monotonic() + ROUND_SECONDS, None
    reader = plain_reader(kafka)
    try:
        while True:
            now, done = time.monotonic(), _count(reader, topic)
            if done and first is None:
                first = (now, done)
            if first is not None and done >= events:
                return (done - first[1]) / (now - first[0])
            if worker.poll() is not None or now > deadline:
                raise TallyhookError(f"{command[-1]} did {done} of {events} events: {log.read_text()[-2000:]}")
            time.sleep(LOOK_SECONDS)
    finally:
        reader.close()
        worker.send_signal(signal.SIGTERM)
        try:
            worker.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


def _count(reader: Consumer, topic: str) -> int:
    ends = (reader.get_watermark_offsets(TopicPartition(topic, n), timeout=10, cached=False) for n in range(PARTITIONS))
    return sum(high for _, high in ends)


def _remove(client: AdminClient, prefix: str) -> None:
    ours = [name for name in client.list_topics(timeout=30).topics if name.startswith(f"{prefix}.")]
    for future in client.delete_topics(ours).values():
        future.result(timeout=30)


if __name__ == "__main__":
    run(KafkaSettings(bootstrap=sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20_000, print)
