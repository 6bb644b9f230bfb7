"""Cases at the door are told of one ingress process on real Kafka, with topics of its own; the others of a whole
pipeline that they share."""

from collections.abc import Iterator

import pytest

from tests.cases.shop import Shop
from tests.integration.ingress.conftest import environment, ingress, key, names, records, start, topics
from tests.running import RunningPipeline

__all__ = ["environment", "ingress", "key", "names", "pipeline", "records", "shop", "start", "topics"]


@pytest.fixture(scope="session")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPipeline]:
    """One `tallyhook up` for every case that needs the whole road."""
    with RunningPipeline(tmp_path_factory.mktemp("cases") / "state") as running:
        yield running


@pytest.fixture
def shop(pipeline: RunningPipeline) -> Iterator[Shop]:
    """The pipeline as one case uses it, with objects of its own; what it set aside is closed at its end."""
    made = Shop(pipeline)
    yield made
    made.close_what_is_open()
    made.close()
