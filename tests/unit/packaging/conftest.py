"""What the tests of image, compose file and chart share."""

import pytest

from tests.unit.packaging.helm import Helm
from tests.unit.packaging.programs import program, unpacked_helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Helm of TALLYHOOK_HELM or PATH, else the pinned one."""
    path = program("helm") or unpacked_helm(tmp_path_factory.mktemp("helm"))
    if path is None:
        pytest.skip("helm is not installed: put it on PATH or name it in TALLYHOOK_HELM")
    return Helm(path)
