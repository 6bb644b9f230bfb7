"""The topics of a test and the workers on them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tallyhook.settings import Installation, KafkaSettings
from tests.integration.streams.traffic import Road
from tests.integration.streams.worker import Worker

MakeWorker = Callable[..., Worker]


@pytest.fixture
def road(kafka_settings: KafkaSettings, installation: Installation) -> Road:
    """Fresh topics."""
    made = Road(kafka_settings, installation)
    made.create_topics()
    return made


@pytest.fixture
def make_worker(kafka_bootstrap: str, installation: Installation, tmp_path: Path) -> Iterator[MakeWorker]:
    """Makes workers by name; what still runs at the end is ended."""
    made: list[Worker] = []

    def make(name: str = "worker", **options: Any) -> Worker:
        made.append(Worker(kafka_bootstrap, installation, tmp_path / name, **options))
        return made[-1]

    yield make
    for worker in made:
        worker.discard()


@pytest.fixture
def worker(make_worker: MakeWorker) -> Worker:
    """One worker of the product, not started."""
    return make_worker()
