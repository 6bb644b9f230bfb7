"""`tallyhook reconcile`: every way in which two sides can differ, with both values and the events; nothing else."""

import json
import threading
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tallyhook.clock import SystemClock
from tallyhook.operations.gaps import GapTable
from tallyhook.operations.reconcile.difference import Difference, Surroundings
from tallyhook.operations.reconcile.missing_events import EventCheck
from tallyhook.postgres import Queries
from tests.integration.operations.both_sides import (
    deposit,
    found,
    movement,
    put_deposit,
    put_event,
    put_movement,
    put_withdrawal,
    reconcile,
    withdrawal,
)
from tests.integration.operations.operated import MERCHANT, Operated
from tests.integration.operations.test_backfill import listed
from tests.integration.operations.test_gaps import put_gap
from tests.integration.operations.test_gateway_api import client
from tests.integration.operations.tiny_gateway import Fault, TinyGateway


def test_two_sides_that_agree(quiet: Operated, gateway: TinyGateway) -> None:
    """Over several pages of everything, in another order than ours; other merchants' records are not looked at."""
    for number in range(250, 0, -1):
        entity = deposit(
            f"dep_{number}",
            late_slip_accepted_until="2026-05-01T17:00:00+07:00",
            fee_breakdown={"b": 1.50, "a": [None, "ค่าธรรมเนียม"]},
        )
        gateway.deposits.append(entity)
        put_deposit(
            quiet,
            entity,
            late_slip_accepted_until="2026-05-01T10:00:00Z",
            fee_breakdown={"a": [None, "ค่าธรรมเนียม"], "b": 1.5},
        )
    for number in range(120):
        gateway.withdrawals.append(withdrawal(f"wd_{number}"))
        put_withdrawal(quiet, withdrawal(f"wd_{number}", refunded_minor=0))
    total = 0
    for number in range(1, 230):
        total += number
        gateway.transactions.append(movement(number, number, None, "available", available=total))
        put_movement(quiet, gateway.transactions[-1])
    put_movement(quiet, movement(999, 5, None, "available", available=1), merchant="mer_2")
    gateway.balance = {"available": total, "locked": 0}
    told = reconcile(quiet, gateway)
    assert found(told) == []
    compared = {"event": 0, "deposit": 250, "withdrawal": 120, "balance_transaction": 229, "bucket": 2}
    assert told["compared"] == compared
    assert (told["whole"], told["counts"]) == (True, {})
    assert [path for path in gateway.asked if "/deposits/" in path] == []
    done = quiet.command("reconcile", "--merchant", MERCHANT, **gateway.environment)
    assert done.stdout.splitlines()[-1] == "differences: none"


def test_an_event_that_never_came(quiet: Operated, gateway: TinyGateway) -> None:
    """Of the missing numbers those that the gateway lists are told, each with its event; the others are none."""
    put_gap(quiet, 10, 12, 1.0)
    put_gap(quiet, 500, 500, 1.0)
    gateway.events = {9: listed(9), 11: listed(11), 13: listed(13), 500: listed(500), 501: listed(501)}
    told = reconcile(quiet, gateway, "--events", code=1)
    assert found(told) == [
        ("evt_11", "missing here", "sequence", None, 11),
        ("evt_500", "missing here", "sequence", None, 500),
    ]
    assert told["differences"][0]["detail"] == "deposit.open of dep_11; `tallyhook backfill --gaps` fetches it"
    assert told["compared"] == {"event": 4}


def test_an_event_that_comes_meanwhile_is_no_difference(quiet: Operated, gateway: TinyGateway) -> None:
    """What is missing is looked for once more after a moment: one of two has come by then."""
    put_gap(quiet, 10, 11, 1.0)
    gateway.events = {10: listed(10), 11: listed(11)}
    schema = quiet.settings.installation.schema_name
    queries = Queries("tallyhook.operations.reconcile", "reconcile.sql", schema)

    def come() -> None:
        quiet.connection.execute("UPDATE sequence_gaps SET last_sequence = 10")

    around = Surroundings(quiet.connection, queries, MERCHANT, SystemClock().now, come)
    found = list(EventCheck(client(gateway), around, GapTable(quiet.connection, schema)).run())
    assert [finding.there for finding in found if isinstance(finding, Difference)] == [10]


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"status": "reversed"}, ("status", "reversed", "settled")),
        ({"is_terminal": None}, ("is_terminal", None, True)),
        ({"fee_total_minor": 100, "credited_amount_minor": 9_900}, ("fee_total_minor", 100, 150)),
        ({"fee_breakdown": {"a": 2}}, ("fee_breakdown", {"a": 2}, {"a": 1})),
        ({"overpayment": {"claim_id": "c"}}, ("overpayment", {"claim_id": "c"}, None)),
        ({"balance_transaction_id": "btxn_2"}, ("balance_transaction_id", "btxn_2", "btxn_1")),
        (
            {"late_slip_accepted_until": "2026-05-01T10:00:00.000001Z"},
            ("late_slip_accepted_until", "2026-05-01T10:00:00.000001Z", "2026-05-01T10:00:00Z"),
        ),
    ],
)
def test_each_member_of_a_deposit(
    quiet: Operated, gateway: TinyGateway, members: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """At the same version another value is a difference, told with both and with the events."""
    entity = deposit(
        "dep_1",
        fee_breakdown={"a": 1},
        balance_transaction_id="btxn_1",
        late_slip_accepted_until="2026-05-01T10:00:00Z",
    )
    gateway.deposits = [deposit("dep_0"), entity]
    put_deposit(quiet, deposit("dep_0"))
    put_deposit(quiet, entity, **members)
    put_event(quiet, "evt_1", "dep_1", 1, "advanced")
    put_event(quiet, "evt_3", "dep_1", 3, "advanced")
    put_event(quiet, "evt_2", "dep_1", 2, "late")
    told = reconcile(quiet, gateway, "--deposits", code=1)
    assert ("dep_1", "differs", *expected) in found(told)
    assert {row["id"] for row in told["differences"]} == {"dep_1"}
    assert [(event["event_id"], event["version"], event["verdict"]) for event in told["differences"][0]["events"]] == [
        ("evt_1", 1, "advanced"),
        ("evt_3", 3, "advanced"),
        ("evt_2", 2, "late"),
    ]


def test_each_member_of_a_withdrawal(quiet: Operated, gateway: TinyGateway) -> None:
    """What the gateway's snapshot leaves out says nothing; the reference follows the rule of the events."""
    gateway.withdrawals = [
        withdrawal("wd_1", filled_minor=70_000, remaining_minor=30_000),
        withdrawal("wd_2", merchant_reference=None, metadata={"ticket": "", "payout_id": "p-2"}),
        withdrawal("wd_3", merchant_reference=None, metadata={"ticket": "t-3", "payout_id": "p-3"}),
        withdrawal("wd_4", refunded_minor=5),
        withdrawal("wd_5"),
    ]
    put_withdrawal(quiet, withdrawal("wd_1"))
    put_withdrawal(quiet, withdrawal("wd_2", merchant_reference="p-2"))
    put_withdrawal(quiet, withdrawal("wd_3", merchant_reference="p-3"))
    put_withdrawal(quiet, withdrawal("wd_4"))
    put_withdrawal(quiet, withdrawal("wd_5", refunded_minor=7))
    assert found(reconcile(quiet, gateway, "--withdrawals", code=1)) == [
        ("wd_1", "differs", "filled_minor", 100_000, 70_000),
        ("wd_1", "differs", "remaining_minor", 0, 30_000),
        ("wd_3", "differs", "our_ref", "p-3", "t-3"),
        ("wd_4", "differs", "refunded_minor", None, 5),
    ]


def test_orders_that_one_side_has_in_another_version_or_not_at_all(quiet: Operated, gateway: TinyGateway) -> None:
    """Behind with the row's age, ahead, missing here with what waits, missing there; another merchant's is not ours."""
    gateway.deposits = [
        deposit("dep_behind", version=5),
        deposit("dep_ahead", version=2),
        deposit("dep_missing"),
        {"id": "dep_odd", "version": "x"},
    ]
    put_deposit(quiet, deposit("dep_behind", version=3))
    put_deposit(quiet, deposit("dep_ahead", version=4))
    put_deposit(quiet, deposit("dep_unknown", version=6))
    put_deposit(quiet, deposit("dep_theirs"))
    put_event(quiet, "evt_theirs", "dep_theirs", 3, "advanced", merchant="mer_2")
    put_event(quiet, "evt_b3", "dep_behind", 3, "advanced")
    quiet.connection.execute(
        "INSERT INTO quarantined_events (stage, reason, detail, event_id, object_id, raw, headers, source_topic,"
        " source_partition, source_offset) VALUES ('sinks', 'money_rule', 'd', 'evt_b5', 'dep_behind', '{}', %s,"
        " 'events', 0, 1)",
        (Jsonb({"ce_version": "5", "ce_sequence": "77"}),),
    )
    told = reconcile(quiet, gateway, "--deposits", code=1)
    assert sorted(found(told)) == [
        ("dep_ahead", "ahead", "version", 4, 2),
        ("dep_behind", "behind", "version", 3, 5),
        ("dep_missing", "missing here", "version", None, 3),
        ("dep_odd", "unreadable", None, None, None),
        ("dep_unknown", "missing there", "version", 6, None),
    ]
    (behind,) = [row for row in told["differences"] if row["what"] == "behind"]
    assert behind["detail"] == "the row is 1.5 h old"
    assert [(event["event_id"], event["version"], event["verdict"], event["reason"]) for event in behind["events"]] == [
        ("evt_b3", 3, "advanced", None),
        ("evt_b5", 5, "quarantined", "money_rule"),
    ]
    assert told["counts"] == {"ahead": 1, "behind": 1, "missing here": 1, "unreadable": 1, "missing there": 1}


def test_what_is_on_its_way_is_no_difference(quiet: Operated, gateway: TinyGateway) -> None:
    """A row, a version and a movement that come while it looks; and an order that is made meanwhile."""
    gateway.deposits = [deposit("dep_new"), deposit("dep_moving", version=4)]
    gateway.transactions = [movement(1, 10, None, "available", available=10)]
    gateway.balance = {"available": 10}
    put_deposit(quiet, deposit("dep_moving", version=3))

    def arrive() -> None:
        put_deposit(quiet, deposit("dep_new"))
        quiet.connection.execute("UPDATE pg_deposits SET pg_version = 4 WHERE pg_deposit_id = 'dep_moving'")
        put_movement(quiet, gateway.transactions[0])

    threading.Timer(0.5, arrive).start()
    own = ("--merchant", MERCHANT, "--patience", "2", "--json")
    done = quiet.command("reconcile", *own, **gateway.environment)
    assert (done.returncode, json.loads(done.stdout)["differences"]) == (0, [])


def test_movements_that_differ(quiet: Operated, gateway: TinyGateway) -> None:
    """Missing on either side, and each member of one that has other content."""
    gateway.transactions = [movement(number, 10, None, "available") for number in range(1, 5)]
    put_movement(quiet, gateway.transactions[0])
    changed: dict[str, Any] = {
        "type": "x",
        "direction": "debit",
        "amount_minor": 11,
        "bucket_from": "locked",
        "bucket_to": None,
    }
    put_movement(quiet, gateway.transactions[1], **changed, source={"id": None}, created_at="2026-05-01T00:02:01.5Z")
    put_movement(quiet, gateway.transactions[3])
    put_movement(quiet, movement(9, 90, None, "available"))
    put_event(quiet, "evt_9", "btxn_0009", None, "immutable")
    told = reconcile(quiet, gateway, "--transactions", code=1)
    assert found(told) == [
        ("btxn_0002", "differs", "type", "x", "balance.credited"),
        ("btxn_0002", "differs", "direction", "debit", "credit"),
        ("btxn_0002", "differs", "amount_minor", 11, 10),
        ("btxn_0002", "differs", "bucket_from", "locked", None),
        ("btxn_0002", "differs", "bucket_to", None, "available"),
        ("btxn_0002", "differs", "source_id", None, "dep_1"),
        ("btxn_0002", "differs", "created_at", "2026-05-01T00:02:01.500000Z", "2026-05-01T00:02:00.5Z"),
        ("btxn_0009", "missing there", "amount_minor", 90, None),
        ("btxn_0003", "missing here", None, None, None),
    ]
    assert [event["event_id"] for event in told["differences"][7]["events"]] == ["evt_9"]


def test_a_bucket_that_is_off_names_the_movement_where_it_began(quiet: Operated, gateway: TinyGateway) -> None:
    """A record is missing: the next one is the first that is off, and all sums after it are."""
    movements = [
        movement(1, 1000, None, "pending", pending=1000, available=0),
        movement(2, 1000, "pending", "available", pending=0, available=1000),
        movement(3, 300, "available", None, pending=0, available=700),
        movement(4, 200, "available", None, pending=0, available=500),
    ]
    for number in (0, 1, 3):
        put_movement(quiet, movements[number])
    put_event(quiet, "evt_4", "btxn_0004", None, "immutable")
    gateway.balance = {"pending": 0, "available": 500, "locked": 0}
    told = reconcile(quiet, gateway, "--balance", code=1)
    assert found(told) == [
        ("available", "differs", "available_minor", 800, 500),
        ("btxn_0004", "differs", "balance_after.available_minor", 800, 500),
    ]
    assert "off since btxn_0004" in told["differences"][0]["detail"]
    assert [row["events"][0]["event_id"] for row in told["differences"]] == ["evt_4", "evt_4"]
    put_movement(quiet, movements[2])
    assert found(reconcile(quiet, gateway, "--balance")) == []
    gateway.balance = {"pending": 0, "available": 500, "locked": 3}
    assert found(reconcile(quiet, gateway, "--balance", code=1)) == [("locked", "differs", "locked_minor", 0, 3)]


def test_many_differences_in_bounded_memory(
    quiet: Operated, gateway: TinyGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is to be looked at once more is kept in small parts; none is lost between them."""
    for module in ("orders", "transactions"):
        monkeypatch.setattr(f"tallyhook.operations.reconcile.{module}.SUSPECTS_MAX", 20)
        monkeypatch.setattr(f"tallyhook.operations.reconcile.{module}.PAGE_IDS", 7)
    gateway.page_items = 10
    gateway.deposits = [deposit(f"dep_{number}") for number in range(45)]
    gateway.transactions = [movement(number, 1, None, "available") for number in range(45)]
    for number in range(30, 90):
        put_deposit(quiet, deposit(f"dep_{number}"))
        put_movement(quiet, movement(number, 1, None, "available"))
    told = reconcile(quiet, gateway, "--deposits", "--transactions", code=1)
    assert told["counts"] == {"missing here": 60, "missing there": 90}
    assert len({(row["kind"], row["id"]) for row in told["differences"]}) == 150


def test_an_api_that_breaks_off(quiet: Operated, gateway: TinyGateway) -> None:
    """What was found is told, that it is not whole too; exit code 1."""
    gateway.page_items = 1
    gateway.deposits = [deposit("dep_1"), deposit("dep_2")]
    own = ("--merchant", MERCHANT, "--patience", "0.05", "--json")
    environment = gateway.environment | {"TALLYHOOK_GATEWAY_API_ATTEMPTS": "1"}
    gateway.faults = [Fault(500)]
    done = quiet.command("reconcile", *own, **environment)
    assert done.returncode == 1
    assert json.loads(done.stdout)["whole"] is False
    assert "did not answer" in done.stderr


def test_the_lines_for_a_person(quiet: Operated, gateway: TinyGateway) -> None:
    """One a difference, with both values and the events; what came from outside is escaped."""
    gateway.deposits = [deposit("dep_\u202e1", status="expired")]
    put_deposit(quiet, deposit("dep_\u202e1"))
    put_event(quiet, "evt_1", "dep_\u202e1", 3, "advanced")
    own = ("--deposits", "--merchant", MERCHANT, "--patience", "0.05")
    done = quiet.command("reconcile", *own, **gateway.environment)
    told = 'deposit dep_\\u202e1  differs  status: here "settled", there "expired"  (both are version 3)'
    assert done.stdout.splitlines() == [
        f"{told}  events: evt_1 (v3 advanced)",
        "compared: 1 deposits",
        "differences: 1 differs",
    ]
