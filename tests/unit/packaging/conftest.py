"""What the tests of image, compose file and chart share."""

import os

import pytest

from tests.unit.packaging.helm import Helm
from tests.unit.packaging.programs import HELMS, unpacked_helm


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make helm-verify` asks for every version of the Kubernetes API; `make test` takes the oldest and the newest."""
    parser.addoption("--every-kubernetes", action="store_true", help="validate the chart against every known API")


GIVEN = os.environ.get("TALLYHOOK_HELM")


@pytest.fixture(scope="session", params=HELMS if GIVEN is None else ["given"])
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The pinned Helm 3 and Helm 4, one after the other, or just the one that TALLYHOOK_HELM names."""
    return _helm(str(request.param), tmp_path_factory)


@pytest.fixture(scope="session")
def helm4(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """The pinned Helm 4, for what Helm 3 cannot do without a cluster."""
    return _helm("helm4", tmp_path_factory)


def _helm(name: str, folders: pytest.TempPathFactory) -> Helm:
    found = GIVEN or unpacked_helm(name, folders.mktemp(name))
    if found is None:
        pytest.skip(f"{HELMS[name]} is not installed: name a helm in TALLYHOOK_HELM")
    return Helm(found)
