"""An installation from a wheel has every file that the program reads."""

import tomllib

import pytest

from tests.unit.packaging.tree import ROOT

PACKAGES = ("bench", "ingress", "schemas", "sinks", "streams", "tallyhook")
READ_AT_RUN_TIME = (".json", ".lock", ".mako", ".sql", ".toml", ".yaml")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_file_that_is_read_is_installed(package: str) -> None:
    """`package-data` covers the statements, catalogues and schemas beside the modules."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    covered = {
        path
        for name, patterns in told.items()
        for pattern in patterns
        for path in (ROOT / name.replace(".", "/")).glob(pattern)
    }
    there = {path for path in (ROOT / package).rglob("*") if path.suffix in READ_AT_RUN_TIME}
    assert sorted(str(path.relative_to(ROOT)) for path in there - covered) == []
