"""Which test is which case, and how each ended: the table at the end of `make cases`."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

CASES = range(1, 27)
NOT_YET: frozenset[int] = frozenset()
"""Cases that no test tells yet; whoever writes one takes its number out of here."""

PROPERTY = "case"
ENDINGS = ("passed", "failed", "error", "skipped", "xfailed", "xpassed")


@dataclass(frozen=True, slots=True)
class Ending:
    """How one test of a case ended; the reason is that of a skip, else empty."""

    case: int
    test: str
    ending: str
    reason: str = ""


def note_number(item: pytest.Item) -> None:
    """Writes the number of the test's case where its reports carry it; raises UsageError for one that cannot be."""
    for marker in item.iter_markers("case"):
        (number,) = marker.args
        if number not in CASES or number in NOT_YET:
            raise pytest.UsageError(f"{item.nodeid}: case {number} is unknown or listed as not told in {__file__}")
        item.user_properties.append((PROPERTY, number))


def endings(stats: dict[str, list[object]]) -> Iterator[Ending]:
    """The endings of all tests that are cases, from the reports that pytest has gathered."""
    for ending in ENDINGS:
        for report in stats.get(ending, []):
            if isinstance(report, pytest.TestReport):
                for name, number in report.user_properties:
                    if name == PROPERTY and isinstance(number, int):
                        yield Ending(number, report.nodeid, ending, _reason(report) if report.skipped else "")


def lines(found: Iterable[Ending]) -> Iterator[str]:
    """A line for each test, by number; one for each case that was not run or that no test tells."""
    by_case: dict[int, list[Ending]] = {number: [] for number in CASES}
    for one in found:
        by_case[one.case].append(one)
    for number, tests in by_case.items():
        for one in sorted(tests, key=lambda ending: (ending.test, ending.ending)):
            yield f"{number:>4}  {one.ending:<8} {one.test}" + (f": {one.reason}" if one.reason else "")
        if not tests:
            yield f"{number:>4}  {'not yet' if number in NOT_YET else 'not run'}"


def _reason(report: pytest.TestReport) -> str:
    told = report.longrepr
    return str(told[2] if isinstance(told, tuple) else told).removeprefix("Skipped: ")
