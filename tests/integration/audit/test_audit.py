"""The audit on a running pipeline: clean where nothing is wrong, red in exactly the checks of a planted fault."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from schemas.headers import texts
from tallyhook import kafka
from tallyhook.operations.audit import marks as noting
from tallyhook.operations.audit.findings import CHECKS, AuditReport, CheckName
from tallyhook.operations.audit.run import examine
from tallyhook.operations.audit.topic_ranges import Range
from tests.chaos.deposits import make_world
from tests.integration.audit.conftest import Audited
from tests.integration.audit.events import deposit
from tests.integration.audit.faults import DEBIT, FAULTS, PRUNING, USER
from tests.integration.audit.more_faults import MORE_FAULTS
from tests.running import await_true

pytestmark = pytest.mark.timeout(300)

PLANTED = FAULTS | MORE_FAULTS
ONE_EACH = (
    *("a deleted inbox row", "another verdict", "a missing outbox number", "a lowered version", "a changed flag"),
    *("a missing chunk", "a transaction of two reversals", "a changed balance transaction", "a changed balance"),
    *("a balance that was announced wrongly", "a second credit", "a doubled effect", "a deleted outbox row"),
)
"""Faults that are red in each check of the tables, and in the one of the effects."""


def told(report: AuditReport, name: CheckName) -> str:
    """Every counterexample of a check as text."""
    return "\n".join(example.text for check in report.checks if check.name == name for example in check.examples)


def test_it_is_clean_after_traffic_of_every_sort(audited: Audited) -> None:
    """Exit code 0; every check has compared something, and nothing was left out."""
    shown = audited.command("--json")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    report = json.loads(shown.stdout)
    assert report["clean"] is True
    assert [check["name"] for check in report["checks"]] == list(CHECKS)
    assert {check["name"] for check in report["checks"] if check["looked_at"] == 0} == set()
    assert {check["name"]: check["left_out"] for check in report["checks"] if check["left_out"]} == {}
    plain = audited.command()
    assert plain.returncode == 0, plain.stderr
    assert "\nclean: the database of " in plain.stdout


def test_it_is_clean_while_traffic_flows(audited: Audited) -> None:
    """Again and again during the posting, and each time it has seen more."""
    gateway = audited.start_gateway(make_world(seed=8, events=500, deposits=150), rate_a_second=50)
    seen, sent = [], gateway.sent
    while gateway.sent < len(audited.worlds[-1].deliveries):
        await_true(lambda sent=sent: gateway.sent > sent, 30, "traffic between two audits")  # type: ignore[misc]
        sent = gateway.sent
        report = audited.audit()
        assert report.red == [], "\n".join(told(report, name) for name in report.red)
        seen.append(sum(check.looked_at for check in report.checks))
    gateway.join(60)
    assert len(seen) >= 3
    assert seen == sorted(seen)
    assert seen[0] < seen[-1]
    audited.settle()
    assert audited.audit().red == []


def assert_named(audited: Audited, name: str, since: datetime | None) -> None:
    """Red are the checks that the fault belongs to and no other, and one names what it was planted in."""
    fault = PLANTED[name]
    (it,) = audited.one(fault.choice)
    report = audited.audit_planted(*fault.statements, parameters={"it": it}, since=since)
    assert set(report.red) == fault.red, {check: told(report, check) for check in report.red}
    sought = f"partition {it}" if isinstance(it, int) else str(it)
    assert sought in told(report, fault.named_in)


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named(audited: Audited, name: str) -> None:
    """Each is red in the checks that it belongs to and in no other, and is named."""
    assert_named(audited, name, None)


@pytest.mark.parametrize("name", ONE_EACH)
def test_a_planted_fault_of_late_is_named_by_an_audit_since_then(audited: Audited, name: str) -> None:
    """All of the traffic came within the hour, so an audit of this hour finds what the whole one does."""
    assert_named(audited, name, datetime.now(UTC) - timedelta(hours=1))


def test_what_the_broker_lost_before_it_was_judged_or_applied_is_named(audited: Audited) -> None:
    """Positions that do not lie within what the topics hold, on either side."""
    marks = noting.note(audited.settings)
    number, committed = next(iter(marks.committed.items()))
    held = marks.events[number]
    cases: list[tuple[CheckName, str, dict[str, Any]]] = [
        ("events", "the broker lost records", {"committed": {number: held.end + 5}}),
        (
            "events",
            "were cut before they were judged",
            {"events": dict(marks.events) | {number: Range(committed + 2, held.end)}},
        ),
        (
            "deliveries",
            "were cut before they were applied",
            {"state_changes": {n: Range(one.end + 1, one.end + 1) for n, one in marks.state_changes.items()}},
        ),
    ]
    for name, words, changes in cases:
        report = audited.audit_planted("SELECT 1", marks=replace(marks, **changes))
        assert words in told(report, name), name


def test_a_skipped_offset_is_named(audited: Audited) -> None:
    """The sink's position is raised over state changes that it never applied."""
    with audited.frozen("sink"):
        audited.post([deposit("evt_skipped", "dep_skipped", 1, "open")])
        ends = _await_end(audited, "dep_skipped")
        report = audited.audit_planted(
            "UPDATE sink_offsets SET next_offset = %(end)s"
            " WHERE topic = 'tallyhook.state-changes' AND partition = %(partition)s",
            parameters=ends,
        )
    assert report.red == ["deliveries"]
    assert "event evt_skipped, tallyhook.state-changes[" in told(report, "deliveries")
    audited.settle()


def _await_end(audited: Audited, object_id: str) -> dict[str, int]:
    """Partition and end of `state-changes` once the object's record is there."""
    found: dict[str, int] = {}

    def there() -> bool:
        for message in kafka.read_to_end(audited.settings.kafka, audited.names.state_changes, timeout_seconds=20):
            if message.key() == object_id.encode():
                found.update(partition=message.partition() or 0, end=(message.offset() or 0) + 1)
        return bool(found)

    await_true(there, 30, f"the state change of {object_id}")
    return found


def test_an_event_that_the_stream_has_committed_and_never_judged_is_named(audited: Audited) -> None:
    """The position says that it is done, and neither topic has it."""
    with audited.frozen("stream"):
        audited.post([deposit("evt_unjudged", "dep_unjudged", 1, "open")])
        marks = noting.note(audited.settings)
        ahead = {number: held.end for number, held in marks.events.items()}
        report = audited.audit_planted("SELECT 1", marks=replace(marks, committed=ahead))
    assert report.red == ["events"]
    assert "event evt_unjudged, tallyhook.events[" in told(report, "events")
    audited.accepted -= 1
    audited.correlate({"dep_unjudged": ("ref_unjudged", "ord_unjudged", "user_unjudged")})
    audited.accepted += 1
    audited.settle()


def test_an_effect_that_counts_as_sent_and_is_not_there_is_named(audited: Audited) -> None:
    """The relay's progress names a row that no topic has; when the relay goes on, the audit is clean again."""
    audited.correlate({"dep_unsent": ("ref_unsent", "ord_unsent", "user_unsent")})
    with audited.frozen("relay"):
        audited.post([deposit("evt_unsent", "dep_unsent", 1, "open")])
        row = "SELECT partition, seq, id FROM pg_outbox WHERE dedupe_key = 'evt_unsent:update_order_status'"
        await_true(lambda: audited.connection.execute(row).fetchone() is not None, 30, "the outbox row")
        partition, seq, row_id = audited.one(row)
        progress = json.dumps({"seq": seq, "id": str(row_id)}).encode()
        audited.put(audited.names.relay_progress, partition, progress, [], str(partition))
        report = audited.audit()
    assert report.red == ["effects"]
    assert "evt_unsent:update_order_status" in told(report, "effects")
    audited.settle()
    assert audited.audit().red == []


def test_a_committed_fault_ends_the_command_with_one(audited: Audited) -> None:
    """The text names the user and the danger, and the command is clean again once the fault is gone."""
    (user,) = audited.one(USER)
    change = "UPDATE pg_user_balances SET balance_minor = balance_minor + %s WHERE user_id = %s"
    audited.connection.execute(change, (5, user))
    try:
        shown, as_json = audited.command(), audited.command("--json")
    finally:
        audited.connection.execute(change, (-5, user))
    assert shown.returncode == as_json.returncode == 1, shown.stdout + shown.stderr
    assert f"user {user} has a balance of" in shown.stdout
    assert "ledger is broken. P2 no double" in shown.stdout
    assert "NOT clean" in shown.stdout
    (red,) = (check for check in json.loads(as_json.stdout)["checks"] if check["found"])
    assert red["name"] == "ledger"
    assert red["examples"][0]["ids"] == {"user_id": user}
    assert audited.command().returncode == 0


def test_what_was_pruned_is_named_and_not_guessed(audited: Audited) -> None:
    """Forty days later, the older half of inbox and outbox gone: nothing is red, and it is told what was left out."""
    marks = noting.note(audited.settings)
    with audited.planted(*PRUNING, parameters={}) as snapshot:
        snapshot.at += timedelta(days=40)
        report = examine(audited.settings, marks, snapshot, lambda *_: None)
    assert report.red == [], {name: told(report, name) for name in report.red}
    left_out = {check.name for check in report.checks if check.left_out}
    assert left_out >= {"deliveries", "arrival_numbers", "outbox_numbers", "aggregates", "ledger", "outbox", "effects"}


def test_rows_that_are_too_young_to_be_pruned_are_missed(audited: Audited) -> None:
    """The same rows gone today: that was no pruning."""
    marks = noting.note(audited.settings)
    report = audited.audit_planted(*PRUNING, marks=marks)
    assert set(report.red) >= {"deliveries", "outbox", "effects"}


def test_a_fault_beside_what_was_pruned_is_named(audited: Audited) -> None:
    """The credit of a deposit whose events are gone is doubled by its debit."""
    marks = noting.note(audited.settings)
    (key,) = audited.one(DEBIT)
    change = "UPDATE pg_user_balance_entries SET amount_minor = amount_minor - 1 WHERE entry_key = %(it)s"
    with audited.planted(*PRUNING, change, parameters={"it": key}) as snapshot:
        snapshot.at += timedelta(days=40)
        report = examine(audited.settings, marks, snapshot, lambda *_: None)
    assert report.red == ["ledger"]
    assert key in told(report, "ledger")


def test_what_retention_has_cut_is_named(audited: Audited) -> None:
    """The older half of events, state-changes and one effect topic is gone: clean, and it is told what is missing."""
    audited.cut_half(audited.names.events)
    audited.cut_half(audited.names.state_changes, more=1)
    audited.cut_half(audited.names.effect("update_order_status"))
    report = audited.audit()
    assert report.red == [], {name: told(report, name) for name in report.red}
    left_out = {check.name: sorted(check.left_out) for check in report.checks if check.left_out}
    assert set(left_out) == {"events", "deliveries", "effects"}
    assert left_out["events"] == [
        "events of tallyhook.events that retention has cut",
        "events of tallyhook.events whose state changes retention has cut",
    ]


def test_a_record_that_comes_twice_is_named(audited: Audited) -> None:
    """Last, since a record cannot be taken back: the same effect again, and one of which the outbox knows nothing."""
    topic = audited.names.effect("fail_order")
    first = next(iter(kafka.read_to_end(audited.settings.kafka, topic, timeout_seconds=20)))
    headers: dict[str, Any] = texts(kafka.headers_of(first))
    partition, key = first.partition() or 0, (first.key() or b"").decode()
    audited.put(topic, partition, first.value() or b"", list(headers.items()), key)
    invented = headers | {"ce_id": "evt_invented:fail_order", "ce_outboxseq": "999999999"}
    audited.put(topic, partition, first.value() or b"", list(invented.items()), key)
    report = audited.audit()
    assert report.red == ["effects"]
    assert f"({headers['ce_id']}): outbox row {headers['ce_outboxseq']} was sent before" in told(report, "effects")
    assert "(evt_invented:fail_order): outbox row 999999999 is not there" in told(report, "effects")
    since = audited.audit_planted("SELECT 1", since=datetime.now(UTC) - timedelta(hours=1))
    assert since.red == ["effects"]
    audited.put(topic, partition, b"{}", [("ce_id", "nobody's")], key)
    audited.put(topic, partition, first.value() or b"", list(headers.items()), "another key")
    report = audited.audit()
    assert "somebody other than the relay wrote it" in told(report, "effects")
    assert f"key is another key instead of {key}" in told(report, "effects")
