"""No consumer that keeps positions may jump when one is lost: `auto.offset.reset` is `error`."""

import re

import pytest

from tallyhook.errors import SettingsError
from tallyhook.kafka import plain_reader
from tallyhook.settings import KafkaSettings
from tests.unit.packaging.tree import ROOT

PACKAGES = ("ingress", "streams", "sinks", "tallyhook")
SET = re.compile(r"""["']?auto[._]offset[._]reset["']?\s*[:=]\s*["']([a-z]+)["']""")
EXCEPTIONS = {
    # It inserts what is not there yet, so that reading again from the beginning changes nothing.
    "sinks/correlations.py": {"earliest"},
    # Faust has no `error`; before it starts and beside it, positions are held against the topic's range.
    "streams/app.py": {"earliest"},
}


def test_a_reader_that_would_jump_is_refused() -> None:
    """Whatever else it was given."""
    options = {"auto.offset.reset": "latest"}
    with pytest.raises(SettingsError, match=r"auto\.offset\.reset=latest: must be error"):
        plain_reader(KafkaSettings(bootstrap="127.0.0.1:1"), **options)


def test_every_consumer_in_the_program() -> None:
    """Found by its text, so that a new one is, too."""
    found: dict[str, set[str]] = {}
    for path in (source for package in PACKAGES for source in (ROOT / package).rglob("*.py")):
        if values := set(SET.findall(path.read_text(encoding="utf-8"))):
            found[str(path.relative_to(ROOT))] = values
    assert {"tallyhook/kafka.py", "sinks/membership.py"} <= set(found)
    for path_name, values in found.items():
        assert values == EXCEPTIONS.get(path_name, {"error"}), path_name
