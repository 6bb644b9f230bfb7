"""What is posted in the chaos: a simulated world's events, late and more than once, and letters nobody can read."""

import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from confluent_kafka import KafkaException, Producer

from schemas.topics import TopicNames
from tallyhook.gateway.world.generate import generate
from tallyhook.gateway.world.model import Correlation, World
from tallyhook.kafka import producer
from tallyhook.settings import KafkaSettings
from tests.running import MERCHANT, RunningPipeline

LATE_SHARE, TWICE_SHARE, LETTER_SHARE = 0.3, 0.15, 0.01
LETTERS_MIN = 3
FIRST_SHARE = 1 / 3
DELIVERY_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Delivery:
    """A body as it is posted under this id."""

    id: str
    body: bytes


@dataclass(frozen=True)
class Load:
    """A world and the order in which its deliveries are posted, letters among them.

    Args:
        letters: authentic bodies that are no events, by the id they are posted under.
    """

    world: World
    deliveries: Sequence[Delivery]
    letters: dict[str, bytes]


def make_load(seed: int, objects: int, *, late_by: int) -> Load:
    """A world of so many objects with test traffic; three of ten events come up to `late_by` places late."""
    chance = random.Random(seed)
    world = generate(seed, objects, merchant_id=MERCHANT, open_ends=False)
    placed: list[tuple[float, Delivery]] = []
    for number, event in enumerate(world.events):
        delivery = Delivery(event.id, event.body)
        late = chance.uniform(0, late_by) if chance.random() < LATE_SHARE else 0
        placed.append((number + late, delivery))
        if chance.random() < TWICE_SHARE:
            placed.append((number + chance.uniform(0, 2 * late_by), delivery))
    letters = {}
    for number in range(max(LETTERS_MIN, int(LETTER_SHARE * len(world.events)))):
        letter = Delivery(f"letter_{seed}_{number}", json.dumps({"letter": [seed, number]}).encode())
        letters[letter.id] = letter.body
        placed.append((chance.uniform(0, len(world.events)), letter))
    placed.sort(key=lambda place: place[0])
    return Load(world, [delivery for _, delivery in placed], letters)


class Correlator(threading.Thread):
    """The merchant's service: a third of the correlations at once, the others while the events come.

    Every second one goes through the topic, the others through the table. What dies meanwhile is tried again.

    Args:
        share: how much of the load was posted, 0 to 1.
    """

    def __init__(self, pipeline: RunningPipeline, load: Load, share: Callable[[], float]) -> None:
        super().__init__(name="correlator", daemon=True)
        ready = pipeline.ready
        self._pipeline, self._share, self._schema = pipeline, share, ready["schema"]
        self._known = [one for one in load.world.correlations if one.written_at is not None]
        self._topic = TopicNames(ready["topic_prefix"]).deposit_correlations
        self.fatal: list[str] = []
        self._producer: Producer = producer(
            KafkaSettings(bootstrap=ready["kafka_bootstrap"]),
            linger_ms=5,
            delivery_timeout_seconds=DELIVERY_SECONDS,
            on_fatal=lambda error: self.fatal.append(error.str()),
        )

    def run(self) -> None:
        """Until the last one is written."""
        ways = {self._insert: self._known[::2], self._publish: self._known[1::2]}
        done = dict.fromkeys(ways, 0)
        while any(done[write] < len(rows) for write, rows in ways.items()):
            share = min(1.0, FIRST_SHARE + (1 - FIRST_SHARE) * (self._share() + 0.01))
            for write, rows in ways.items():
                try:
                    if due := rows[done[write] : int(len(rows) * share)]:
                        write(due)
                        done[write] += len(due)
                except (psycopg.OperationalError, KafkaException):
                    pass  # a server is being restarted: the merchant's service would try again, too
                except FileNotFoundError:
                    return  # the pipeline has stopped: the test is over
            time.sleep(0.1)

    def _insert(self, rows: Sequence[Correlation]) -> None:
        columns = [(one.pg_deposit_id, one.merchant_reference, one.our_order_id, one.our_user_id) for one in rows]
        with self._pipeline.connect() as connection, connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {self._schema}.pg_deposit_correlations"
                " (pg_deposit_id, merchant_reference, our_order_id, our_user_id) VALUES (%s, %s, %s, %s)"
                " ON CONFLICT DO NOTHING",
                columns,
            )

    def _publish(self, rows: Sequence[Correlation]) -> None:
        failed: list[Any] = []
        for one in rows:
            members = ("pg_deposit_id", "merchant_reference", "our_order_id", "our_user_id")
            value = json.dumps({name: getattr(one, name) for name in members}).encode()
            self._producer.produce(
                self._topic,
                value,
                one.pg_deposit_id.encode(),
                on_delivery=lambda error, _: failed.append(error) if error is not None else None,
            )
        if self._producer.flush(DELIVERY_SECONDS) or failed:
            raise KafkaException(failed[0] if failed else None)
