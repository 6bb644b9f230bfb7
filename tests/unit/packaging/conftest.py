"""What the tests of image, compose file and chart share."""

import pytest

from tests.unit.packaging.helm import Helm, program


@pytest.fixture(scope="session")
def helm() -> Helm:
    """Helm where the machine has it: on PATH, or at TALLYHOOK_HELM."""
    path = program()
    if path is None:
        pytest.skip("helm is not installed: put it on PATH or name it in TALLYHOOK_HELM")
    return Helm(path)
