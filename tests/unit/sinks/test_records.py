"""Records become arrivals, whatever is in them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.headers import Header
from schemas.topics import TopicNames
from sinks.contents import DepositContent, TransactionContent, WithdrawalContent
from sinks.domain.withdrawal_state import FactKeys
from sinks.records import Arrival, Reader, SinkRecord, Source
from tests.integration.sinks.deliveries import (
    Delivery,
    body,
    chunk,
    deposit,
    movement,
    overpayment,
    taken_back,
    withdrawal,
)

MOVED = {"type": "credit", "direction": "in", "amount_minor": 1, "created_at": "2026-05-01T00:00:00Z"}
"""What a balance transaction cannot be without."""

READER = Reader(TopicNames("p"), livemode=True)


def read(delivery: Delivery) -> Arrival:
    """The arrival of a delivery from place 3 of partition 2 of `events`."""
    return READER.read(SinkRecord(1, 9, 4, delivery.body, delivery.headers(2, 3)))


def test_a_good_record() -> None:
    """Event, flag, source and the moment of receipt are there; nothing is refused."""
    arrival = read(deposit("evt", "dep", 1, "open", overpayment=overpayment("clm")))
    assert arrival.refusal is None
    assert arrival.source == Source("p.events", 2, 3)
    assert arrival.received_at == datetime(2026, 5, 1, 10, tzinfo=UTC)
    assert isinstance(arrival.content, DepositContent)
    assert arrival.content.flag is not None
    assert arrival.content.flag.flag.claim_id == "clm"


@pytest.mark.parametrize("missing", ["ce_id", "ce_livemode", "ce_sourcepartition", "ce_sourceoffset", "ce_receivedat"])
def test_a_header_that_is_missing(missing: str) -> None:
    """The record cannot be told apart from others: it is foreign, and its own place is its source."""
    good = deposit("evt", "dep", 1, "open")
    headers = [(name, value) for name, value in good.headers(2, 3) if name != missing]
    arrival = READER.read(SinkRecord(1, 9, 4, good.body, headers))
    assert arrival.refusal is not None
    assert (arrival.refusal.reason, arrival.foreign) == ("record_headers", True)
    assert missing in arrival.refusal.detail
    assert arrival.source == Source("p.state-changes", 1, 9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ce_origin", "mail"),
        ("ce_receivedat", "2026-05-01T10:00:00"),
        ("ce_receivedat", "1969-05-01T10:00:00Z"),
        ("ce_receivedat", "soon"),
        ("ce_sourceoffset", "-1"),
        ("ce_sourceoffset", "٣"),
        ("ce_sourceoffset", "9" * 30),
        ("ce_merchant", "m\0"),
        ("ce_keyid", b"\xff"),
    ],
)
def test_a_header_that_cannot_be_kept(name: str, value: str | bytes) -> None:
    """It is refused with the header's fault before anything is asked of the database."""
    good = deposit("evt", "dep", 1, "open")
    arrival = read(Delivery("evt", "dep", 1, "open", good.body, changed={name: value}))
    assert arrival.refusal is not None
    assert arrival.refusal.reason == "record_headers"


@pytest.mark.parametrize("kind", ["deposit_order", "withdrawal_order", "balance_transaction", "payment_link"])
@pytest.mark.parametrize("changed", ["id", "object_id", "kind"])
def test_headers_that_name_another_event_than_the_body(kind: str, changed: str) -> None:
    """Dedupe and fence go by the headers, so they must be the body's."""
    names = {"id": "evt", "object_id": "obj", "kind": kind} | {changed: "other"}
    snapshot = {"id": names["object_id"], "object": names["kind"], "version": 1, "status": "open"} | MOVED
    arrival = read(Delivery("evt", "obj", 1, "open", body(names["id"], "t", snapshot), kind=kind))
    assert arrival.refusal is not None
    assert (arrival.refusal.reason, arrival.foreign) == ("record_headers", True)


@pytest.mark.parametrize("version", [None, 2])
def test_a_version_that_is_not_the_bodys(version: int | None) -> None:
    """An order without a version, or with another one than its body, is a record that nobody of ours wrote."""
    for made in (deposit("evt", "obj", 1, "open"), withdrawal("evt", "obj", 1, "open")):
        arrival = read(replace(made, version=version))
        assert arrival.refusal is not None
        assert (arrival.refusal.reason, arrival.foreign) == ("record_headers", True)


def test_a_withdrawal_and_what_it_is_decided_with() -> None:
    """A chunk asks for its leg, a reversal for both transactions too; a sparse event builds no row."""
    filled = read(withdrawal("evt", "wdr", 1, "open", fill=chunk("leg")))
    back = read(withdrawal("evt", "wdr", 1, "open", fill=chunk("leg"), reversal=taken_back("leg"), sparse=True))
    assert isinstance(filled.content, WithdrawalContent)
    assert isinstance(back.content, WithdrawalContent)
    assert (filled.content.keys, filled.content.can_build) == (FactKeys("leg"), True)
    assert (back.content.keys, back.content.can_build) == (FactKeys("leg", ("btxn-leg", "rtxn-leg")), False)


def test_a_balance_transaction() -> None:
    """It is read whole; without a version there is nothing to compare."""
    for version in (None, 7):
        arrival = read(replace(movement("evt", "btxn"), version=version))
        assert isinstance(arrival.content, TransactionContent)
        assert (arrival.content.transaction.btxn_id, arrival.content.transaction.source_id) == ("btxn", "dep-1")


def test_a_kind_without_rules_needs_no_version() -> None:
    """Nothing is read of it but its names."""
    snapshot = {"id": "pay", "object": "payment_link", "amount_minor": "anything"}
    arrival = read(Delivery("evt", "pay", None, "", body("evt", "t", snapshot), kind="payment_link"))
    assert (arrival.refusal, arrival.content) == (None, None)


HEADERS: st.SearchStrategy[list[Header]] = st.lists(
    st.tuples(st.sampled_from(["ce_id", "ce_livemode", "ce_version", "ce_sourceoffset", "x"]), st.binary() | st.text())
)


@given(st.binary(), HEADERS)
def test_nothing_in_a_record_raises(value: bytes, headers: list[Header]) -> None:
    """Any bytes and any headers become an arrival that is refused."""
    assert READER.read(SinkRecord(0, 0, 1, value, headers)).refusal is not None
