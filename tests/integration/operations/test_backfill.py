"""`tallyhook backfill` up to the topics: what is published, what is closed, and where it goes on."""

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
from confluent_kafka import Message

from schemas.headers import texts
from tallyhook import kafka
from tests.integration.operations.operated import MERCHANT, PATIENCE_SECONDS, Operated, deposit_body
from tests.integration.operations.test_gaps import OPEN, put_gap
from tests.integration.operations.tiny_gateway import Fault, TinyGateway
from tests.running import await_true

CLOSED = "SELECT first_sequence, last_sequence, state, actor FROM sequence_gaps WHERE state <> 'open' ORDER BY 1"


def listed(sequence: int, **members: Any) -> bytes:
    """An event of a deposit of its own, with blanks that must arrive."""
    event = json.loads(deposit_body(f"evt_{sequence}", f"dep_{sequence}", 1, "open"))
    return json.dumps(event | {"sequence": sequence} | members, ensure_ascii=False, indent=1).encode()


def backfill(place: Operated, gateway: TinyGateway, *arguments: str, code: int = 0) -> Any:
    """What the command prints as JSON."""
    done = place.command("backfill", *arguments, "--json", **gateway.environment)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def records(place: Operated, topic: str) -> list[Message]:
    """What a topic holds."""
    return kafka.read_to_end(place.settings.kafka, topic, timeout_seconds=30)


def outcomes(told: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Number and fate of each, ranges with both their ends."""
    return [
        (row["sequence"], row["outcome"]) if "sequence" in row else (row["first"], row["last"], row["outcome"])
        for row in told["outcomes"]
    ]


def put_inbox(place: Operated, event_id: str, sequence: int) -> None:
    """An event that was applied."""
    place.connection.execute(
        "INSERT INTO pg_webhook_inbox (event_id, event_type, event_raw, received_at, processed_at, object_id,"
        " object_kind, version, merchant_id, sequence, partition, arrival_seq, source_partition, source_offset,"
        " verdict, key_id, origin) VALUES (%s, 'deposit.open', '{}', now(), now(), 'dep', 'deposit_order', 1, %s, %s,"
        " 0, %s, 0, 0, 'advanced', 'k1', 'webhook')",
        (event_id, MERCHANT, sequence, sequence),
    )


def test_a_dry_run_says_what_would_be_done_and_does_nothing(still: Operated, gateway: TinyGateway) -> None:
    """Neither in Kafka nor in the tables."""
    gateway.events = {number: listed(number) for number in (1, 2, 5, 9, 12)}
    put_gap(still, 2, 8, 100)
    told = backfill(still, gateway, "--gaps", "--dry-run")
    assert outcomes(told) == [
        (2, "would be published"),
        (5, "would be published"),
        (3, 4, "would be unlisted"),
        (6, 8, "would be unlisted"),
    ]
    assert told["counts"] == {"would be published": 2, "would be unlisted": 5}
    assert still.rows(OPEN) == [(2, 8)]
    assert records(still, still.names.events) == []
    told = backfill(still, gateway, "--since-sequence", "4", "--dry-run")
    assert [row[0] for row in outcomes(told)] == [5, 9, 12, 6]
    assert still.rows("SELECT count(*) FROM backfills") == [(0,)]


def test_only_what_is_missing_is_published_as_the_door_would(still: Operated, gateway: TinyGateway) -> None:
    """The API's JSON under the object's key, the door's headers, no proof; the rest of the gaps is closed."""
    gateway.events = {number: listed(number) for number in range(1, 300) if number not in (52, 205)}
    put_gap(still, 50, 52, 100)
    put_gap(still, 200, 210, 1)
    told = backfill(still, gateway, "--gaps", "--actor", "nok")
    assert told["counts"] == {"published": 12, "unlisted": 2}
    published = {message.key(): message for message in records(still, still.names.events)}
    assert len(published) == 12
    record = published[b"dep_50"]
    assert record.value() == listed(50)
    headers = texts(kafka.headers_of(record))
    received_at = headers.pop("ce_receivedat")
    assert received_at.endswith("Z")
    still.deliver(listed(50))
    (door,) = [message for message in records(still, still.names.events) if message.key() == b"dep_50"][1:]
    expected = texts(kafka.headers_of(door)) | {"ce_origin": "backfill", "ce_keyid": ""}
    for name in ("ce_receivedat", "webhook-id", "webhook-timestamp", "webhook-signature"):
        del expected[name]
    assert headers == expected
    assert record.partition() == door.partition()
    # What is published stays open until a sink has seen it; what the list has passed by is closed, with the reason.
    assert still.rows(OPEN) == [(50, 51), (200, 204), (206, 210)]
    assert still.rows(CLOSED) == [(52, 52, "unlisted", "nok"), (205, 205, "unlisted", "nok")]
    ((reason,),) = still.rows("SELECT reason FROM sequence_gaps WHERE first_sequence = 52")
    assert reason.startswith("the gateway lists 100 events from 50 to 150, and not these (asked 20")
    assert gateway.asked == [f"/v1/pay/events?since_sequence={since}&limit=100" for since in (49, 199)]


def test_what_the_door_would_not_take_as_an_event(still: Operated, gateway: TinyGateway) -> None:
    """Test events go to their topic, the rest to the dead letters, with number and merchant for whoever keeps them."""
    gateway.events = {
        2: listed(2, livemode=False),
        3: listed(3, account={"merchant_id": "mer_other"}),
        4: listed(4, data={"object": {"id": "dep_4", "object": "deposit_order", "status": "open"}}),
        5: listed(5),
    }
    put_gap(still, 2, 4, 100)
    told = backfill(still, gateway, "--gaps", "--merchant", MERCHANT)
    assert [(row["sequence"], row["to"], row["outcome"]) for row in told["outcomes"]] == [
        (2, "test events", "published"),
        (3, "dead letters", "published"),
        (4, "dead letters", "published"),
    ]
    assert [message.value() for message in records(still, f"{still.settings.installation.test_prefix}.events")] == [
        listed(2, livemode=False)
    ]
    letters = {message.key(): texts(kafka.headers_of(message)) for message in records(still, still.names.dead_letters)}
    kept = ("ce_stage", "ce_reason", "ce_origin", "ce_keyid", "ce_merchant", "ce_sequence", "ce_id")
    assert {key: tuple(headers[name] for name in kept) for key, headers in letters.items()} == {
        b"dep_3": ("ingress", "envelope_merchant", "backfill", "", "mer_other", "3", "evt_3"),
        b"dep_4": ("ingress", "envelope_version", "backfill", "", MERCHANT, "4", "evt_4"),
    }
    assert records(still, still.names.events) == []


def test_what_is_in_the_inbox_is_not_sent_again(still: Operated, gateway: TinyGateway) -> None:
    """It is counted."""
    gateway.events = {number: listed(number) for number in range(1, 6)}
    put_inbox(still, "evt_2", 2)
    put_inbox(still, "evt_4", 4)
    told = backfill(still, gateway, "--since-sequence", "1", "--merchant", MERCHANT)
    assert told["counts"] == {"in the inbox": 2, "published": 2}
    assert sorted(message.key() or b"" for message in records(still, still.names.events)) == [b"dep_3", b"dep_5"]


def test_a_long_list_that_breaks_off_goes_on_where_it_was(still: Operated, gateway: TinyGateway) -> None:
    """Exit code 1 with the way on; the second run asks for nothing twice and forgets its place at the end."""
    gateway.events = {number: listed(number) for number in range(1, 251)}
    gateway.faults = []
    environment = gateway.environment | {"TALLYHOOK_GATEWAY_API_ATTEMPTS": "2"}

    class Breaks(dict[int, bytes]):
        def items(self) -> Any:
            if len(gateway.asked) == 2:
                gateway.faults = [Fault(500)] * 2
            return super().items()

    gateway.events = Breaks(gateway.events)
    arguments = ("backfill", "--since-sequence", "0", "--merchant", MERCHANT)
    done = still.command(*arguments, **environment)
    assert done.returncode == 1
    assert "goes on where it was" in done.stderr
    assert still.rows("SELECT since_sequence, next_sequence FROM backfills") == [(0, 200)]
    gateway.events = dict(gateway.events)
    gateway.asked.clear()
    done = still.command(*arguments, **environment)
    assert done.returncode == 0
    assert "goes on behind 200" in done.stderr
    assert gateway.asked == ["/v1/pay/events?since_sequence=200&limit=100"]
    assert still.rows("SELECT count(*) FROM backfills") == [(0,)]
    keys = [message.key() for message in records(still, still.names.events)]
    assert sorted(key or b"" for key in keys) == sorted(f"dep_{number}".encode() for number in range(1, 251))


def test_restart_begins_anew(still: Operated, gateway: TinyGateway) -> None:
    """Whatever an earlier run had come to."""
    gateway.events = {number: listed(number) for number in range(1, 4)}
    still.connection.execute("INSERT INTO backfills VALUES (%s, 0, 2)", (MERCHANT,))
    arguments = ("--since-sequence", "0", "--merchant", MERCHANT)
    assert len(backfill(still, gateway, *arguments, "--dry-run")["outcomes"]) == 1
    backfill(still, gateway, *arguments, "--restart")
    assert len(records(still, still.names.events)) == 3


def test_ctrl_c_loses_nothing(still: Operated, gateway: TinyGateway) -> None:
    """Stopped in the middle of a page, run again: every event is there, each of the first page's at most twice."""
    gateway.events = {number: listed(number) for number in range(1, 121)}
    arguments = ["backfill", "--since-sequence", "0", "--merchant", MERCHANT]
    process = subprocess.Popen(
        [sys.executable, "-m", "tallyhook", *arguments, "--rate", "50"],
        env=still.variables(**gateway.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    await_true(lambda: len(records(still, still.names.events)) > 0, PATIENCE_SECONDS, "the first event")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, told
    before = len(records(still, still.names.events))
    assert before < 120
    assert still.command(*arguments, **gateway.environment).returncode == 0
    found = [message.key() for message in records(still, still.names.events)]
    assert set(found) == {f"dep_{number}".encode() for number in range(1, 121)}
    assert len(found) <= 120 + before


def test_a_gap_behind_the_end_of_the_list_stays_open(still: Operated, gateway: TinyGateway) -> None:
    """Whether it will be listed cannot be told yet: exit code 1."""
    gateway.events = {number: listed(number) for number in (1, 2, 3)}
    put_gap(still, 2, 2, 100)
    put_gap(still, 5, 7, 100)
    told = backfill(still, gateway, "--gaps", code=1)
    assert told["counts"] == {"published": 1, "not reached": 3}
    assert still.rows(OPEN) == [(2, 2), (5, 7)]
    assert still.rows(CLOSED) == []


def test_another_accounts_key_closes_nothing(still: Operated, gateway: TinyGateway) -> None:
    """Its list would pass all our gaps by."""
    gateway.events = {number: listed(number, account={"merchant_id": "mer_other"}) for number in (1, 5, 9)}
    put_gap(still, 3, 6, 100)
    done = still.command("backfill", "--gaps", "--merchant", MERCHANT, **gateway.environment)
    assert done.returncode == 1
    assert "lists events of mer_other and none of mer_1" in done.stderr
    assert still.rows(OPEN) == [(3, 6)]
    assert records(still, still.names.dead_letters) == []


def test_what_kafka_does_not_take_closes_nothing(still: Operated, gateway: TinyGateway) -> None:
    """An event above the topic's limit: the run says so, and goes on from there the next time."""
    gateway.events = {2: listed(2, padding="x" * 1_500_000), 9: listed(9)}
    put_gap(still, 2, 5, 100)
    told = backfill(still, gateway, "--gaps", code=1)
    assert outcomes(told) == [(2, "not confirmed")]
    assert told["outcomes"][0]["why"]
    assert still.rows(OPEN) == [(2, 5)]


def test_a_range_that_somebody_ignored_is_not_fetched(still: Operated, gateway: TinyGateway) -> None:
    """Nor asked for."""
    gateway.events = {number: listed(number) for number in range(1, 10)}
    put_gap(still, 2, 3, 100, state="ignored")
    assert backfill(still, gateway, "--gaps")["counts"] == {}
    assert gateway.asked == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "either --gaps or --since-sequence"),
        (("--gaps", "--since-sequence", "3"), "either --gaps or --since-sequence"),
        (("--gaps",), "TALLYHOOK_GATEWAY_API_URL"),
    ],
)
def test_wrong_usage(quiet: Operated, arguments: tuple[str, ...], told: str) -> None:
    """Exit code 2, and what to give."""
    done = quiet.command("backfill", *arguments)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_lines_for_a_person(still: Operated, gateway: TinyGateway) -> None:
    """One an event, one a range, and the sum; what came from outside is escaped."""
    gateway.events = {2: listed(2, type="deposit.\u202eopen"), 6: listed(6)}
    put_gap(still, 2, 4, 100)
    done = still.command("backfill", "--gaps", **gateway.environment)
    assert done.stdout.splitlines() == [
        "2  evt_2  deposit.\\u202eopen  dep_2  published",
        "3-4  unlisted: the gateway's list has passed it by",
        "1 published, 2 unlisted",
    ]
