"""What a check keeps, and how a report is printed."""

from datetime import UTC, datetime

import orjson

from tallyhook.operations.audit.findings import CHECKS, EXAMPLES_MAX, MEANINGS, AuditReport, Checks


def test_only_the_first_counterexamples_are_kept_and_all_are_counted() -> None:
    """The first twenty in order."""
    check = Checks()["ledger"]
    for number in range(50):
        check.fail(f"user {number}", user_id=str(number))
    assert check.found == 50
    assert [example.ids["user_id"] for example in check.examples] == [str(number) for number in range(EXAMPLES_MAX)]


def test_a_report_is_json_with_all_that_it_says() -> None:
    """Every check with its meaning, examples with their ids, and what was left out with how much of it."""
    checks = Checks()
    checks["effects"].fail("a record", seq=7)
    for how_many in (2, 0, 3):
        checks["events"].leave_out("what retention has cut", how_many)
    report = AuditReport(datetime(2026, 3, 2, tzinfo=UTC), list(checks.values()))
    found = orjson.loads(orjson.dumps(report.as_json()))
    by_name = {check["name"]: check for check in found["checks"]}
    assert found["clean"] is False
    assert report.red == ["effects"]
    assert list(by_name) == list(CHECKS) == list(MEANINGS)
    assert by_name["effects"]["examples"] == [{"text": "a record", "ids": {"seq": 7}}]
    assert by_name["events"]["left_out"] == {"what retention has cut": 5}
    assert by_name["ledger"]["endangers"].startswith("P2")
