"""The table at the end of `make cases` tells the truth about every case."""

import re
from pathlib import Path

from tests.cases.table import CASES, NOT_YET, Ending, lines


def test_every_case_has_a_test_or_is_listed_as_not_told_yet() -> None:
    """No number is forgotten, and none is listed that a test tells."""
    told: set[int] = set()
    for file in Path(__file__).parent.glob("test_*.py"):
        found = re.findall(r"^@pytest\.mark\.case\((\d+)\)$", file.read_text(encoding="utf-8"), re.MULTILINE)
        told |= {int(number) for number in found}
    assert told.isdisjoint(NOT_YET)
    assert told | NOT_YET == set(CASES)


def test_the_table_names_what_was_skipped_failed_and_not_run() -> None:
    """A line for each test, by number, with the reason of a skip; each other case says that it was not run."""
    found = [
        Ending(11, "test_door.py::test_case_11", "skipped", "the servers are given"),
        Ending(4, "test_door.py::test_case_4[tables]", "failed"),
        Ending(4, "test_door.py::test_case_4[lines]", "passed"),
    ]
    table = list(lines(found))
    assert table[3:5] == [
        "   4  passed   test_door.py::test_case_4[lines]",
        "   4  failed   test_door.py::test_case_4[tables]",
    ]
    assert "  11  skipped  test_door.py::test_case_11: the servers are given" in table
    assert table[0] == "   1  not run"
    assert [line for line in table if line.endswith("not yet")] == [
        f"{number:>4}  not yet" for number in sorted(NOT_YET)
    ]
    assert len(table) == len(CASES) + 1
