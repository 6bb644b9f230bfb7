"""The page about the doctor names every finding that there is, and no other."""

import re
from typing import get_args

from tallyhook.operations.doctor.findings import FindingId
from tests.unit.packaging.tree import ROOT

IDS = set(get_args(FindingId))


def test_the_page_names_every_finding() -> None:
    """Each in a row of a table."""
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z_]+)` \| (?:breaks|warning) ", page, re.MULTILINE)) == IDS


def test_every_finding_can_be_found() -> None:
    """No id stands in the list that no check gives."""
    folder = ROOT / "tallyhook" / "operations" / "doctor"
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.py") if path.name != "findings.py"]
    rules = {"compacted", "not_compacted", "retention_short"}  # given by the rules that the processes share
    assert {found for text in texts for found in re.findall(r'"([a-z_]+)"', text) if found in IDS} | rules == IDS
