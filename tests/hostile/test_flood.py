"""A flood of hostile requests on a real process: it answers by its table, keeps its size, and loses nothing honest."""

import time
from collections import Counter
from random import Random

import psutil
import pytest
from confluent_kafka import Message

from ingress.keyring import Keyring
from ingress.messages import Head, Request
from ingress.schemes.standard_webhooks import StandardWebhooks
from schemas.headers import WEBHOOK_HEADERS
from schemas.topics import TopicNames
from tallyhook.clock import SystemClock
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings import Installation
from tests.hostile.doors import DoorUnderTest, open_door
from tests.hostile.flood import Flood
from tests.hostile.ledger import Ledger, digest
from tests.integration.ingress.events import header_pairs

SHORT, LONG = 5_000, 100_000
SETTLED_REQUESTS = 10_000
GROWTH_BYTES = 20 << 20
PROVED = 2_000
SEED = 20_260_101


def stored(door: DoorUnderTest) -> dict[str, list[Message]]:
    """Every record by topic, test events too."""
    names = (door.names.events, door.names.dead_letters, TopicNames(door.installation.test_prefix).events)
    return {name: door.records(name) for name in names}


def check_records(door: DoorUnderTest, ledger: Ledger) -> None:
    """What was answered 200 is stored, as often, in one of the topics; every record carries its own good proof."""
    by_topic = stored(door)
    found = {name: Counter(digest(message.value() or b"") for message in there) for name, there in by_topic.items()}
    places: Counter[bytes] = Counter()
    for one in found.values():
        places.update(one.keys())
    assert set(places.values()) <= {1}, "a body lies in two topics"
    total: Counter[bytes] = Counter()
    for one in found.values():
        total.update(one)
    ledger.check(total)
    keys = Keyring(door.key.public_text(), None).keys
    scheme = StandardWebhooks(tolerance_seconds=3_600, max_signatures=16, max_id_bytes=512)
    every = [message for there in by_topic.values() for message in there]
    for message in Random(SEED).sample(every, min(PROVED, len(every))):
        pairs = tuple(
            (name.encode(), value if isinstance(value, bytes) else str(value).encode())
            for name, value in header_pairs(message)
            if name in WEBHOOK_HEADERS
        )
        scheme.verify(Request(Head("POST", "/", pairs), message.value() or b""), keys, SystemClock().now())


def test_a_flood(kafka_bootstrap: str, own_installation: Installation, request: pytest.FixtureRequest) -> None:
    """5,000 requests, 100,000 with --hostile-long; the seed is printed."""
    long = bool(request.config.getoption("--hostile-long"))
    seed = request.config.getoption("--hostile-seed") or SEED
    requests = LONG if long else SHORT
    sizes: dict[str, int] = {}
    with open_door(
        kafka_bootstrap, own_installation, SigningKey.generate(), TALLYHOOK_INGRESS_BODY_TIMEOUT_SECONDS="1"
    ) as door:
        process = psutil.Process(door.process.process.pid)
        print(f"seed {seed}, {requests} requests")
        began = time.monotonic()

        def settle() -> None:
            sizes["settled"] = process.memory_info().rss

        ledger = Flood(door, seed, requests, {min(SETTLED_REQUESTS, requests // 2): settle}).run()
        seconds = time.monotonic() - began
        sizes["end"] = process.memory_info().rss
        check_records(door, ledger)

        print(f"{ledger.requests} requests in {seconds:.0f} s; resident {sizes}")
        print(ledger.table())
        assert ledger.faults == []
        assert sizes["end"] - sizes["settled"] <= GROWTH_BYTES
        assert door.process.metric("tallyhook_ingress_in_flight") == 0
        assert door.process.metric("tallyhook_ingress_refused_total", reason="internal") == 0
        assert process.num_fds() < 100
