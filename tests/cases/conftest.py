"""Cases at the door are told of one ingress process on real Kafka, with topics of its own; those of the relay of relays
alone; the others of a whole pipeline that they share."""

from collections.abc import Iterator

import pytest

from tests.cases import table
from tests.cases.shop import Shop
from tests.integration.ingress.conftest import environment, ingress, key, names, records, start, topics
from tests.integration.relay.conftest import bare_settings, reader, settings, start_relay, writer
from tests.integration.sinks.conftest import road, stage
from tests.running import RunningPipeline
from tests.unit.packaging.conftest import helm

__all__ = [
    "bare_settings",
    "environment",
    "helm",
    "ingress",
    "key",
    "names",
    "pipeline",
    "reader",
    "records",
    "road",
    "settings",
    "shop",
    "stage",
    "start",
    "start_relay",
    "topics",
    "writer",
]


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


def pytest_itemcollected(item: pytest.Item) -> None:
    """Each test of a case carries its number."""
    table.note_number(item)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """`make cases` ends with the table; a run that chooses tests by their marks, as `make test` does, goes without."""
    found = list(table.endings(terminalreporter.stats))
    if found and not config.option.markexpr:
        terminalreporter.section("cases from the life of webhook receivers")
        for line in table.lines(found):
            terminalreporter.write_line(line)
