"""The long form of the chaos is collected only where it is asked for; what is left out so is no skip."""

from pathlib import Path

import pytest

LONG = ("test_long.py", "test_failpoints.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves what takes many minutes out of `make test`."""
    return True if collection_path.name in LONG and not config.getoption("--chaos-long") else None
