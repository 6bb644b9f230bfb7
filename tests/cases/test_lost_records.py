"""A case from the life of webhook receivers: records that were deleted before the sink had applied them."""

import json
import os
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from tallyhook import kafka
from tests.cases.shop import PATIENCE_SECONDS, Shop, event, header_of
from tests.integration.ingress.test_accepting import murmur2
from tests.integration.operations.tiny_gateway import TinyGateway, tiny_gateway
from tests.running import MERCHANT, RunningPipeline, await_true

PARTITION, PARTITIONS = 3, 8
APPLIED, LOW, END = 120, 200, 220
GONE = LOW - APPLIED
NONE: Mapping[str, str] = {}
POSITION = "SELECT next_offset FROM sink_offsets WHERE topic = %s AND partition = %s"
PROCESSED = "SELECT count(*) FROM pg_webhook_inbox WHERE processed_at IS NOT NULL"
OPEN = "SELECT first_sequence, last_sequence FROM sequence_gaps WHERE state = 'open' ORDER BY 1"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Shop]:
    """A pipeline whose offsets and numbers are this case's alone."""
    with RunningPipeline(tmp_path / "state") as running:
        made = Shop(running)
        yield made
        made.close()


@pytest.fixture
def gateway() -> Iterator[TinyGateway]:
    """The gateway's API."""
    with tiny_gateway() as made:
        yield made


def deposits_of_one_partition() -> list[str]:
    """As many deposits as the case has events, all with keys of one partition."""
    names = (f"c21_{number}" for number in range(100 * END))
    chosen = [name for name in names if (murmur2(name.encode()) & 0x7FFFFFFF) % PARTITIONS == PARTITION]
    return chosen[:END]


def settled(sequence: int, deposit: str) -> bytes:
    """The settlement of a deposit, with its number."""
    return json.dumps(event(f"evt_c21_{sequence}", deposit, 1, "settled") | {"sequence": sequence}).encode()


def page(shop: Shop, name: str) -> tuple[int, str]:
    """Status and text of a health page of the sink that runs now; 0 while nobody answers."""
    url = shop.pipeline.ready["metrics_urls"]["sink"].replace("/metrics", f"/{name}")
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except OSError:
        return 0, ""


def told(shop: Shop, *arguments: str, code: int = 0, variables: Mapping[str, str] = NONE) -> Any:
    """What a command prints as JSON."""
    done = shop.command(*arguments, "--json", **variables)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def lose_records(shop: Shop, bodies: list[bytes]) -> None:
    """Posts to a sink that stands still, deletes what it has not applied, and has another one started."""
    topic = shop.names.state_changes
    old = shop.pipeline.ready["pids"]["sink"]
    os.kill(old, signal.SIGSTOP)
    assert shop.post(*bodies) == [200] * len(bodies)
    await_true(
        lambda: kafka.watermarks(shop.kafka, topic, [PARTITION], 10)[PARTITION] == (0, END),
        PATIENCE_SECONDS,
        "the stream to judge what was posted",
    )
    client = kafka.admin(shop.kafka)  # held to the end: its answers end with it
    (deleted,) = client.delete_records([TopicPartition(topic, PARTITION, LOW)]).values()
    deleted.result(PATIENCE_SECONDS)
    assert shop.rows(POSITION, topic, PARTITION) == [(APPLIED,)]
    os.kill(old, signal.SIGKILL)
    await_true(lambda: shop.pipeline.ready["pids"]["sink"] != old, PATIENCE_SECONDS, "another sink")


@pytest.mark.case(21)
@pytest.mark.cases
@pytest.mark.timeout(400)
def test_case_21_records_deleted_before_they_were_applied(own: Shop, gateway: TinyGateway) -> None:
    """Applied up to 120, begins at 200: the sink stands still and says so until the loss of 80 is accepted."""
    deposits = deposits_of_one_partition()
    bodies = [settled(number, deposit) for number, deposit in enumerate(deposits, start=1)]
    gateway.events = dict(enumerate(bodies, start=1))
    own.correlate(*deposits)
    assert own.post(*bodies[:APPLIED]) == [200] * APPLIED
    own.await_rows([(APPLIED,)], POSITION, own.names.state_changes, PARTITION)
    lose_records(own, bodies[APPLIED:])

    _stands_still(own)
    _refuses_what_is_not_lost(own)
    accepted = told(own, *_accept(LOW), "--actor", "nok")
    assert (accepted["from_offset"], accepted["to_offset"], accepted["records"]) == (APPLIED, LOW, GONE)
    own.await_rows(
        [(MERCHANT, APPLIED + 1, LOW)],
        "SELECT merchant_id, first_sequence, last_sequence FROM sequence_gaps WHERE state = 'open'",
    )
    await_true(lambda: page(own, "readyz")[0] == 200, PATIENCE_SECONDS, "the sink to be ready")
    assert own.rows(PROCESSED) == [(END - GONE,)]
    await_true(lambda: own.metric("sink", "tallyhook_sink_stopped") == 0, PATIENCE_SECONDS, "the metric at 0")

    assert told(own, "gaps")["open"] == {"ranges": 1, "numbers": GONE}
    assert told(own, "backfill", "--gaps", variables=gateway.environment)["counts"] == {"published": GONE}
    own.await_rows([], OPEN)
    _each_once(own, deposits)
    assert own.command(*_accept(LOW)).returncode == 1


def _accept(to_offset: int, *more: str, partition: int = PARTITION) -> tuple[str, ...]:
    place = ("--partition", str(partition), "--to-offset", str(to_offset))
    return ("sink", "accept-loss", *place, "--reason", "deleted by hand", *more)


def _stands_still(shop: Shop) -> None:
    """It lives, is not ready, names partition, range, number and way out, and has applied nothing more."""
    lost = f"partition {PARTITION} of {shop.names.state_changes} was applied up to {APPLIED} and begins at {LOW}"
    await_true(lambda: lost in page(shop, "readyz")[1], PATIENCE_SECONDS, "the sink to name the range")
    status, reasons = page(shop, "readyz")
    assert status == 503
    assert f"records {APPLIED} to {LOW - 1} ({GONE}) are gone" in reasons
    assert f"`tallyhook sink accept-loss --partition {PARTITION} --to-offset {LOW} --reason" in reasons
    assert page(shop, "livez")[0] == 200
    await_true(lambda: shop.metric("sink", "tallyhook_sink_stopped") == 1, PATIENCE_SECONDS, "the metric")
    assert shop.rows(POSITION, shop.names.state_changes, PARTITION) == [(APPLIED,)]
    assert shop.rows(PROCESSED) == [(APPLIED,)]
    assert shop.pipeline.answers("ingress")
    audited = told(shop, "audit", code=1)
    (deliveries,) = (check for check in audited["checks"] if check["name"] == "deliveries")
    assert deliveries["found"] == 1
    found = told(shop, "doctor", code=1)["findings"]
    assert [
        finding["subject"]
        for finding in found
        if finding["id"] == "sink_position" and f"records {APPLIED} to {LOW - 1} ({GONE}) are gone" in finding["found"]
    ] == [f"partition {PARTITION} of {shop.names.state_changes}"]


def _refuses_what_is_not_lost(shop: Shop) -> None:
    """A dry run, another offset and another partition change nothing."""
    assert told(shop, *_accept(LOW, "--dry-run"))["records"] == GONE
    assert shop.command(*_accept(LOW + 10)).returncode == 1
    assert shop.command(*_accept(0, partition=PARTITION + 1)).returncode == 1
    assert shop.rows(POSITION, shop.names.state_changes, PARTITION) == [(APPLIED,)]
    assert shop.rows("SELECT * FROM accepted_losses") == []


def _each_once(shop: Shop, deposits: list[str]) -> None:
    """Every deposit is credited once and its goods are released once; stores and topics agree."""
    shop.await_rows([(END,)], PROCESSED)
    assert sorted(shop.credits(*deposits)) == sorted(deposits)
    topic = shop.names.effect("release_goods")

    def released() -> list[str]:
        return sorted(header_of(message, "ce_subject") for message in shop.published(topic, *deposits))

    await_true(lambda: len(released()) >= END, PATIENCE_SECONDS, "every release")
    assert released() == sorted(deposits)
    audited = told(shop, "audit")
    assert audited["clean"] is True
    (deliveries,) = (check for check in audited["checks"] if check["name"] == "deliveries")
    given_up = f"records ({shop.names.state_changes}[{PARTITION}], {APPLIED} to {LOW - 1})"
    found = {what: number for what, number in deliveries["left_out"].items() if what.startswith(given_up)}
    assert found == {f"{given_up} that were gone and that nok gave up: deleted by hand": GONE}
