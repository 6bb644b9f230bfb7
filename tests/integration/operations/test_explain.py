"""What `explain` knows of an event that was only ever set aside."""

from sinks.quarantine import QuarantinedRow
from sinks.records import Source
from tests.integration.operations.operated import Operated, deposit_body
from tests.integration.operations.set_aside import set_aside_row


def test_the_type_of_what_was_set_aside_is_that_of_its_headers(quiet: Operated) -> None:
    """In the table and in JSON."""
    quiet.set_aside([set_aside_row(quiet, "evt_1", "dep_1", deposit_body("evt_1", "dep_1", 1, "settled"), 0)])

    told = quiet.json("explain", "evt_1")
    shown = quiet.command("explain", "evt_1")

    assert told["event_type"] == "deposit.settled"
    assert [delivery["verdict"] for delivery in told["deliveries"]] == ["quarantined"]
    assert shown.stdout.splitlines()[0] == "evt_1  deposit.settled  dep_1"


def test_a_type_that_no_header_names_stays_unknown(quiet: Operated) -> None:
    """A dead letter may have none; a delivery that has one tells it."""
    place = Source(quiet.names.events, 9, 0)
    nameless = QuarantinedRow("ingress", "envelope_type", "is no text", "evt_2", "dep_2", b"{}", [], place)
    quiet.set_aside([nameless])
    assert quiet.json("explain", "evt_2")["event_type"] is None
    assert quiet.command("explain", "evt_2").stdout.startswith("evt_2  (unknown type)  dep_2")

    quiet.set_aside([set_aside_row(quiet, "evt_2", "dep_2", deposit_body("evt_2", "dep_2", 1, "open"), 1)])
    assert quiet.json("explain", "evt_2")["event_type"] == "deposit.open"
