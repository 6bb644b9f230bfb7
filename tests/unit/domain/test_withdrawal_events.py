"""Which bytes are a withdrawal event that may be kept, and what is read of its order."""

import json

import pytest

from sinks.domain import withdrawals
from sinks.domain.body import read_text
from sinks.domain.withdrawal_state import NotYet
from tests.unit.domain.withdrawal_samples import TOTALS, Json, Ledger, body, reading, refused, sparse, whole

AMOUNTS = [name for name in TOTALS if name.endswith("_minor")]
NO_BIGINTS: list[object] = ["5", 1.5, 1 << 63, -(1 << 63) - 1, []]
NO_SMALLINTS: list[object] = [1 << 15, -(1 << 15) - 1, "4", 0.5]
NO_METADATA: list[object] = [[], {}, None, "B", 7, True, [{"ticket": "B"}], 1.5]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", 5),
        ("version", None),
        ("version", "3"),
        ("version", 3.5),
        ("version", -1),
        ("version", 1 << 63),
        ("status", None),
        ("status", 7),
        ("merchant_reference", 7),
        *((name, value) for name in AMOUNTS for value in NO_BIGINTS),
        *((name, value) for name in ("settled_splits", "max_splits") for value in NO_SMALLINTS),
    ],
)
def test_a_wrong_type_is_named(name: str, value: object) -> None:
    """Whatever the column could not keep is refused before the database sees it, with the field."""
    given = json.loads(body(3, "open"))
    given["data"]["object"][name] = value
    found = refused(json.dumps(given).encode())
    assert found.reason == "body_shape"
    assert f"data.object.{name}" in found.detail


@pytest.mark.parametrize("name", ["id", "object", "version", "status"])
def test_a_missing_member_is_named(name: str) -> None:
    """An order without a version says nothing about its order."""
    given = json.loads(body(3, "open"))
    del given["data"]["object"][name]
    found = refused(json.dumps(given).encode())
    assert (found.reason, f"`{name}`" in found.detail) == ("body_shape", True)


def test_bytes_that_are_no_json_are_refused() -> None:
    """Though the check of the text comes before."""
    assert refused(b'{"id": ').reason == "body_not_json"


@pytest.mark.parametrize("absent", [{}, dict.fromkeys(TOTALS)])
def test_totals_may_be_absent_or_null(absent: Json) -> None:
    """A sparse event is fit; unknown members are passed over."""
    found = sparse(2, "open", reserved_minor=30_000, matched_legs=1, **absent)
    order = found.event.data.object
    assert [getattr(order, name) for name in TOTALS] == [None] * len(TOTALS)
    assert (found.our_ref, found.fill, found.tombstone) == (None, None, None)


@pytest.mark.parametrize(
    "extremes",
    [
        {"filled_minor": (1 << 63) - 1, "max_splits": (1 << 15) - 1},
        {"filled_minor": -(1 << 63), "max_splits": -(1 << 15)},
    ],
)
def test_the_columns_extremes_are_fit(extremes: Json) -> None:
    """The bounds are PostgreSQL's, not ours."""
    assert whole(3, "open", **extremes).event.data.object.filled_minor == extremes["filled_minor"]


@pytest.mark.parametrize(
    ("members", "our_ref"),
    [
        ({"merchant_reference": "A", "metadata": {"ticket": "B", "payout_id": "C"}}, "A"),
        ({"merchant_reference": "", "metadata": {"ticket": "B", "payout_id": "C"}}, "B"),
        ({"merchant_reference": None, "metadata": {"ticket": "B"}}, "B"),
        ({"metadata": {"ticket": "", "payout_id": "C"}}, "C"),
        ({"metadata": {"ticket": None, "payout_id": "C"}}, "C"),
        ({"metadata": {"ticket": 5, "payout_id": "C"}}, "C"),
        ({"metadata": {"ticket": ["B"], "payout_id": "C"}}, "C"),
        ({"metadata": {"payout_id": "ก้อน 7"}}, "ก้อน 7"),
        ({"metadata": {"payout_id": ""}}, None),
        ({"metadata": {"payout_id": 7}}, None),
        ({"metadata": {"Ticket": "B"}}, None),
        *(({"metadata": metadata}, None) for metadata in NO_METADATA),
        ({}, None),
    ],
)
def test_where_our_reference_stands(members: Json, our_ref: str | None) -> None:
    """merchant_reference, else metadata.ticket, else metadata.payout_id; only a text that is not empty counts."""
    assert sparse(3, "open", **members).our_ref == our_ref


@pytest.mark.parametrize("number", ["1e400", "1" * 1_000])
def test_numbers_in_metadata_are_not_read(number: str) -> None:
    """A number that no double holds stops nothing, be it beside the ticket or in its place."""
    for metadata, our_ref in (({"n": 7, "ticket": "B"}, "B"), ({"ticket": 7, "payout_id": "C"}, "C")):
        raw = body(3, "open", metadata=metadata).replace(b": 7", b": " + number.encode())
        assert read_text(raw) == raw.decode()
        assert reading(raw).our_ref == our_ref


def test_the_last_of_a_repeated_key_counts() -> None:
    """As in PostgreSQL's jsonb."""
    raw = body(3, "open", metadata={"ticket": "A"}).replace(b'{"ticket": "A"}', b'{"ticket": "A", "ticket": "B"}')
    assert reading(raw).our_ref == "B"


@pytest.mark.parametrize(
    ("members", "builds"),
    [
        ({"amount_total_minor": 5, "remaining_minor": 0}, True),
        ({"amount_total_minor": 0, "remaining_minor": 5}, True),
        ({"amount_total_minor": 5}, False),
        ({"remaining_minor": 5}, False),
        ({"amount_total_minor": None, "remaining_minor": 5, "filled_minor": 1, "fee_total_minor": 2}, False),
        ({}, False),
    ],
)
def test_a_row_needs_its_total_and_its_remainder(members: Json, builds: bool) -> None:
    """Nothing else; an event that lacks one of them waits, and what it says of building is what becomes of it."""
    found = sparse(3, "open", **members)
    assert withdrawals.can_build(found) is builds
    assert isinstance(Ledger().judge(found), NotYet) is not builds
