"""What the two types of event that carry a fact must bring: a fill, and a reversal that names one."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.domain import withdrawals
from sinks.domain.body import read_text
from sinks.domain.decision import Refusal
from sinks.domain.withdrawal_state import FactKeys, Fill, Tombstone
from tests.unit.domain.withdrawal_samples import (
    FILL,
    LEG,
    REVERSAL,
    WITHDRAWAL_ID,
    Json,
    body,
    event,
    filled,
    reading,
    refused,
    sparse,
    taken_back,
)

FILLED, FILL_REVERSED = "withdrawal.filled", "withdrawal.fill_reversed"
BAD_DATES: list[object] = ["", "2026-08-21", "2026-08-21T03:19:47", "2026-02-30T00:00:00Z", "soon"]
NO_OBJECTS: list[object] = [None, [], 5, "x"]


def faults(name: str, values: list[object], *, of_fill: bool = False) -> list[tuple[Json, Json]]:
    """Each value as a change of the fill or of the reversal."""
    changes: list[Json] = [{name: value} for value in values]
    return [(change, {}) if of_fill else ({}, change) for change in changes]


def test_a_fill_is_read() -> None:
    """Every member in its place, instants in UTC."""
    found = filled(3, settled_at=5, fill_settled_at="2026-08-21T10:19:47.9030004+07:00")
    assert found.fill == Fill(
        leg_ref=LEG,
        pg_withdrawal_id=WITHDRAWAL_ID,
        amount_minor=30_000,
        sequence=1,
        fee_recognized_minor=802,
        settled_at=datetime(2026, 8, 21, 3, 19, 47, 903_000, tzinfo=UTC),
        auto_confirm_at=datetime(2026, 8, 21, 6, 19, 47, 903_000, tzinfo=UTC),
        balance_transaction_id="btxn_fill_1",
    )
    assert found.tombstone is None
    assert withdrawals.keys_of(found) == FactKeys(LEG)


@pytest.mark.parametrize("nulls", [{}, dict.fromkeys(name for name in FILL if name not in ("leg_ref", "amount_minor"))])
def test_a_fill_needs_its_leg_and_amount_only(nulls: Json) -> None:
    """All else may be absent or null."""
    found = sparse(3, "open", FILLED, fill={"leg_ref": LEG, "amount_minor": -5, **nulls})
    assert found.fill == Fill(LEG, WITHDRAWAL_ID, -5)


@pytest.mark.parametrize("fill", [None, [], "leg", 5, True, [FILL]])
def test_a_filled_event_needs_a_fill(fill: object) -> None:
    """Anything else than an object is none."""
    found = refused(body(3, "open", FILLED, fill=fill))
    assert (found.reason, found.detail.startswith("data.fill: ")) == ("fill_shape", True)


def test_an_absent_fill_is_missed() -> None:
    """Likewise."""
    assert refused(body(3, "open", FILLED)).reason == "fill_shape"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("leg_ref", value) for value in (None, "", 5, "x" * 513, "ก" * 171)),
        *(("amount_minor", value) for value in (None, "30000", 1.5, 1 << 63, True)),
        *(("sequence", value) for value in ("1", 1.5, 1 << 15)),
        *(("fee_recognized_minor", value) for value in ("802", 0.5, -(1 << 63) - 1)),
        *(("settled_at", value) for value in (5, *BAD_DATES)),
        *(("auto_confirm_at", value) for value in ({}, *BAD_DATES)),
        ("balance_transaction_id", 5),
    ],
)
def test_a_broken_fill_is_named(name: str, value: object) -> None:
    """The whole event is refused, a bad date too."""
    found = refused(body(3, "open", FILLED, fill={**FILL, name: value}))
    assert found.reason == "fill_shape"
    assert found.detail.startswith(f"data.fill.{name}")
    assert len(found.detail) < 200


@pytest.mark.parametrize("name", ["leg_ref", "amount_minor"])
def test_a_fill_without_its_leg_or_amount(name: str) -> None:
    """Likewise."""
    found = refused(body(3, "open", FILLED, fill={key: value for key, value in FILL.items() if key != name}))
    assert (found.reason, f"`{name}`" in found.detail) == ("fill_shape", True)


@pytest.mark.parametrize("leg_ref", ["x" * 512, "ก" * 170])
def test_a_long_leg_is_a_key(leg_ref: str) -> None:
    """512 bytes fit."""
    assert filled(3, fill_leg_ref=leg_ref).fill is not None


def test_a_reversal_is_read() -> None:
    """With the amount of its fill, the status of its own snapshot and the instant of its event."""
    found = taken_back(9, "settled", created_at="2026-08-22T10:00:00.5+07:00", replacement_withdrawal_id="wdr_8")
    assert found.tombstone == Tombstone(
        leg_ref=LEG,
        pg_withdrawal_id=WITHDRAWAL_ID,
        reason_code="BANK_RECALL",
        reverses_balance_transaction_id="btxn_fill_1",
        reversal_balance_transaction_id="btxn_back_1",
        reversed_at=datetime(2026, 8, 22, 3, 0, 0, 500_000, tzinfo=UTC),
        amount_minor=30_000,
        status_snapshot="settled",
        replacement_withdrawal_id="wdr_8",
    )
    assert found.fill is None
    assert withdrawals.keys_of(found) == FactKeys(LEG, ("btxn_fill_1", "btxn_back_1"))


@pytest.mark.parametrize("code", ["BANK_RECALL", "ACCOUNT_FROZEN", "SLIP_INVALIDATED_AFTER_SETTLEMENT"])
def test_the_three_reasons_of_a_reversal(code: str) -> None:
    """There are no others."""
    found = taken_back(9, reversal_reason_code=code).tombstone
    assert found is not None
    assert found.reason_code == code


@pytest.mark.parametrize(
    ("changed_fill", "changed_reversal"),
    [
        *faults("leg_ref", [None, "", 5, "x" * 513], of_fill=True),
        *faults("amount_minor", [None, "5", 1.5, 1 << 63], of_fill=True),
        *faults("balance_transaction_id", [None, 5, "btxn_other", ""], of_fill=True),
        *faults("reason_code", [None, "", "bank_recall", "OTHER", 5, ["BANK_RECALL"]]),
        *faults("reverses_balance_transaction_id", [None, "", 5, "btxn_other"]),
        *faults("balance_transaction_id", [None, "", 5, "btxn_fill_1", "x" * 513]),
        ({"balance_transaction_id": ""}, {"reverses_balance_transaction_id": ""}),
        ({"balance_transaction_id": "y" * 513}, {"reverses_balance_transaction_id": "y" * 513}),
    ],
)
def test_a_broken_reversal_is_refused(changed_fill: Json, changed_reversal: Json) -> None:
    """A member is missing or of the wrong type, or two contradict each other; the detail is bounded."""
    fill, reversal = {**FILL, **changed_fill}, {**REVERSAL, **changed_reversal}
    found = refused(body(9, "open", FILL_REVERSED, fill=fill, reversal=reversal))
    assert (found.reason, found.detail.startswith("data.")) == ("reversal_shape", True)
    assert len(found.detail) < 300


@pytest.mark.parametrize("part", ["fill", "reversal"])
def test_a_reversal_needs_both_parts(part: str) -> None:
    """Neither may be absent, or anything but an object, where the other one is whole."""
    whole_parts: Json = {"fill": FILL, "reversal": REVERSAL}
    other = {name: value for name, value in whole_parts.items() if name != part}
    for members in (other, *({**other, part: value} for value in NO_OBJECTS)):
        found = refused(body(9, "open", FILL_REVERSED, **members))
        assert (found.reason, found.detail.startswith(f"data.{part}: ")) == ("reversal_shape", True)


@pytest.mark.parametrize("created_at", BAD_DATES)
def test_the_instant_of_a_reversal_must_be_one(created_at: str) -> None:
    """It becomes the row's reversed_at."""
    found = refused(body(9, "open", FILL_REVERSED, fill=FILL, reversal=REVERSAL, created_at=created_at))
    assert found == Refusal("reversal_shape", f"created_at is {created_at!r}")
    assert sparse(9, "open", created_at=created_at).tombstone is None


@pytest.mark.parametrize(("replacement", "fit"), [("wdr_8", True), ("", True), (None, True), (5, False), ({}, False)])
def test_a_replacement_is_text_or_absent(replacement: object, fit: bool) -> None:
    """Whatever else it is, the event cannot be kept."""
    raw = body(9, "open", FILL_REVERSED, fill=FILL, reversal=REVERSAL, replacement_withdrawal_id=replacement)
    if not fit:
        found = refused(raw)
        assert (found.reason, "data.replacement_withdrawal_id" in found.detail) == ("reversal_shape", True)
        return
    tombstone = reading(raw).tombstone
    assert tombstone is not None
    assert tombstone.replacement_withdrawal_id == replacement


def test_other_members_of_a_reversed_fill_are_not_looked_at() -> None:
    """They belong to the event that brought the chunk."""
    odd = {"sequence": "x", "fee_recognized_minor": {}, "settled_at": "soon", "auto_confirm_at": 5}
    raw = body(9, "open", FILL_REVERSED, fill={**FILL, **odd}, reversal=REVERSAL)
    assert reading(raw).tombstone is not None


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FILL, *REVERSAL, "x"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(["withdrawal.matched", "withdrawal.Filled", "filled", "", "deposit.settled"]), ODD, ODD, ODD)
def test_other_types_may_carry_anything_there(type_: str, fill: object, reversal: object, replacement: object) -> None:
    """Only the two types that mean a fact are read for it; the type is compared as it is written."""
    raw = body(9, "open", type_, fill=fill, reversal=reversal, replacement_withdrawal_id=replacement)
    found = reading(raw)
    assert (found.fill, found.tombstone) == (None, None)
    assert withdrawals.keys_of(found) is None


@given(st.sampled_from([FILLED, FILL_REVERSED]), ODD, ODD, ODD, ODD)
def test_reading_never_fails(type_: str, fill: object, reversal: object, replacement: object, metadata: object) -> None:
    """Whatever stands there, the event is read or refused for its shape."""
    raw = body(9, "open", type_, fill=fill, reversal=reversal, replacement_withdrawal_id=replacement, metadata=metadata)
    if isinstance(read_text(raw), Refusal):
        return
    found = withdrawals.read(event(raw))
    if isinstance(found, Refusal):
        assert found.reason == ("fill_shape" if type_ == FILLED else "reversal_shape")
