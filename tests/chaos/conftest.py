"""Collects the long form of the chaos only where it is asked for, and tells at the end what the whole run did."""

import random
from pathlib import Path

import pytest

from tests.chaos.tally import TALLY

SHORT = ("test_road.py", "test_wire.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves what takes many minutes out of `make test`; what is left out so is no skip."""
    if config.getoption("--chaos-long") or not collection_path.name.startswith("test_"):
        return None
    return None if collection_path.name in SHORT else True


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of a test, printed, and told once more at the end of the run."""
    wanted = request.config.getoption("--chaos-seed")
    number = random.SystemRandom().randrange(1_000_000) if wanted is None else int(wanted)
    print(f"seed {number}")
    TALLY.seeds[request.node.nodeid] = number
    return number


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of deaths, when there were any."""
    if TALLY.kills or TALLY.disturbances:
        terminalreporter.section("chaos")
        for line in TALLY.lines():
            terminalreporter.write_line(line)
