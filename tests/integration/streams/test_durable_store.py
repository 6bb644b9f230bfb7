"""RocksDB: a killed worker goes on with its store, and without it."""

import shutil
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from tallyhook.kafka import watermarks
from tests.integration.streams.conftest import MakeWorker
from tests.integration.streams.traffic import (
    Event,
    Place,
    Road,
    assert_first_passes_in_order,
    assert_nothing_lost,
    event,
    header_texts,
    place,
)
from tests.integration.streams.worker import Worker, until

OBJECTS = 100
VERSIONS = 30
OFFSET_KEY = b"__faust\0offset__"
MOST_RESIDENT_MIB = 600


def even_versions() -> Iterator[Event]:
    """3,000 events: versions 2, 4, ... 60 of each object."""
    for version in range(1, VERSIONS + 1):
        for number in range(OBJECTS):
            yield event(version * OBJECTS + number, f"dep_{number}", 2 * version)


def of_each(versions: Iterable[int]) -> Iterator[Event]:
    """These versions of each object."""
    for version in versions:
        for number in range(OBJECTS):
            yield event(90_000 + version * OBJECTS + number, f"dep_{number}", version)


def seconds_to_first_verdict(road: Road, worker: Worker) -> float:
    """From the start of the process until something more has come out; something must wait for it."""
    before, began = road.output_count(), time.monotonic()
    worker.start()
    until(lambda: road.output_count() > before, 60, lambda: f"an output; log ends {worker.log[-3000:]}")
    return time.monotonic() - began


def told_since(road: Road, before: set[Place]) -> dict[str, set[str]]:
    """Verdicts by version, of the outputs that were not there before."""
    found: dict[str, set[str]] = {}
    for messages in road.outputs().values():
        for message in messages:
            if place(message) not in before:
                texts = header_texts(message)
                found.setdefault(texts["ce_version"], set()).add(texts["ce_verdict"])
    return found


def stored(data: Path) -> tuple[int, dict[int, int]]:
    """How many objects the folders of a worker that has ended hold, and up to which offset of the changelog."""
    objects, offsets = 0, {}
    for folder in data.glob("**/objects-*.db"):
        database = Rdict(str(folder), Options(raw_mode=True))
        objects += sum(1 for key in database.keys() if key != OFFSET_KEY)  # noqa: SIM118  not a dict
        offsets[int(folder.stem.removeprefix("objects-"))] = int(database[OFFSET_KEY])
        database.close()
    return objects, offsets


def resident_mib(worker: Worker) -> tuple[float, float]:
    """Memory of the process, now and at its highest."""
    assert worker.process is not None
    lines = Path(f"/proc/{worker.process.pid}/status").read_text().splitlines()
    kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if line.startswith(("VmRSS", "VmHWM"))}
    return kib["VmRSS"] / 1024, kib["VmHWM"] / 1024


def test_kill_9_costs_nothing_with_the_store_and_without(
    road: Road, make_worker: MakeWorker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in the middle, then with its store kept, then deleted: nothing is lost, each version is still known."""
    environment = {"TALLYHOOK_STREAM_STORE": "rocksdb", "TALLYHOOK_STREAM_BATCH_EVENTS": "50"}
    worker = make_worker("durable", environment=environment)
    data = tmp_path / "durable" / "data"
    road.write(even_versions())
    first = seconds_to_first_verdict(road, worker)
    worker.end(signal.SIGKILL)
    assert road.unjudged() > 0  # in the middle of the work
    kept_at_work = seconds_to_first_verdict(road, worker)
    until(lambda: road.unjudged() == 0, 60, "all judged")
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)

    seconds = {}
    expected = {"60": {"redelivered"}, "59": {"late"}, "57": {"late"}, "61": {"advanced"}}
    deliveries: dict[str, tuple[list[int], dict[str, set[str]]]] = {
        "kept": ([60, 59, 57, 61], expected),
        "deleted": ([59, 57, 58, 55, 62], {
            "59": {"redelivered"}, "57": {"redelivered"}, "58": {"redelivered"}, "55": {"late"}, "62": {"advanced"},
        }),
    }  # fmt: skip
    for store, (versions, verdicts) in deliveries.items():
        worker.end(signal.SIGKILL)
        changelog = watermarks(road.kafka, f"{road.group}-objects-changelog", range(road.partitions), 10)
        assert stored(data) == (OBJECTS, {number: high - 1 for number, (_, high) in changelog.items()})
        if store == "deleted":
            shutil.rmtree(data)
        before = {place(message) for messages in road.outputs().values() for message in messages}
        road.write(of_each(versions))
        seconds[store] = seconds_to_first_verdict(road, worker)
        until(lambda: road.unjudged() == 0, 60, "all judged")
        assert verdicts == told_since(road, before)
    now, highest = resident_mib(worker)
    assert worker.end(signal.SIGTERM) == 0
    assert_nothing_lost(road)
    assert_first_passes_in_order(road)
    assert highest < MOST_RESIDENT_MIB
    with capsys.disabled():
        print(
            f"\nfirst verdict after {first:.1f} s (first start), {kept_at_work:.1f} s (killed at work, store kept), "
            f"{seconds['kept']:.1f} s (killed idle, store kept), {seconds['deleted']:.1f} s (store deleted); "
            f"worker has {now:.0f} MiB, at most {highest:.0f} MiB"
        )
