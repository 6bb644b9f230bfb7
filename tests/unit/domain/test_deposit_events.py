"""Deposit events: what the typed reading takes, and the rules that every event must pass."""

import json

import pytest

from schemas.events import DepositEvent, Overpayment
from sinks.domain.decision import Refusal
from sinks.domain.deposits import check, flag_of, json_or_none, parse
from tests.unit.domain.samples import AMOUNTS, FLAG, body, event, refusal

AMOUNT_FIELDS = tuple(AMOUNTS)
BIGINT_MAX = 9_223_372_036_854_775_807


def test_a_whole_event_is_read() -> None:
    """Every field that the rules read comes out as it was sent, and unknown ones are skipped."""
    deposit = event(9, "settled", partial=True, is_terminal=True, unknown={"x": [1]}, metadata=[]).data.object
    assert (deposit.id, deposit.object, deposit.version, deposit.status) == ("dep_7", "deposit_order", 9, "settled")
    assert [getattr(deposit, name) for name in AMOUNT_FIELDS] == list(AMOUNTS.values())
    assert (deposit.is_terminal, bytes(deposit.partial)) == (True, b"true")


@pytest.mark.parametrize("status", ["open", "slip_received", "a_status_of_tomorrow", ""])
def test_unknown_statuses_pass(status: str) -> None:
    """The list of statuses may grow."""
    assert check(event(1, status)) is None


@pytest.mark.parametrize("name", AMOUNT_FIELDS)
@pytest.mark.parametrize("value", [1.5, 1.0, 1e3, True, "100", [100], {"minor": 100}])
def test_an_amount_that_is_no_integer_is_refused(name: str, value: object) -> None:
    """Money is whole satang; nothing is rounded, and true is not 1."""
    found = refusal(parse(body(3, "open", **{name: value})))
    assert found.reason == "body_shape"
    assert found.detail.startswith(f"data.object.{name}: ")


@pytest.mark.parametrize("name", AMOUNT_FIELDS)
def test_amounts_are_within_bigint(name: str) -> None:
    """The greatest and the least that PostgreSQL keeps pass, one more does not, and nothing turns into a float."""
    for fits in (BIGINT_MAX, -BIGINT_MAX - 1, 0):
        assert getattr(event(3, "open", **{name: fits}).data.object, name) == fits
    for beyond in (BIGINT_MAX + 1, -BIGINT_MAX - 2, 1 << 64, 10**30, 10**900):
        assert refusal(parse(body(3, "open", **{name: beyond}))).reason == "body_shape"


@pytest.mark.parametrize("version", ["91", -1, 1.0, True, None, BIGINT_MAX + 1, [1]])
def test_a_version_that_is_no_version_is_refused(version: object) -> None:
    """Text is not a number, also where it looks like one."""
    found = refusal(parse(body(version, "open")))
    assert found.reason == "body_shape"
    assert found.detail.startswith("data.object.version: ")


def test_versions_from_zero_to_the_end_of_bigint_pass() -> None:
    """Zero is a version."""
    assert [event(version, "open").data.object.version for version in (0, BIGINT_MAX)] == [0, BIGINT_MAX]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", None),
        ("status", 5),
        ("is_terminal", "false"),
        ("is_terminal", 0),
        ("late_slip_accepted_until", 1_782_901_995),
        ("clearing_available_at", {}),
        ("balance_transaction_id", 5),
        ("cancel_reason_code", ["late"]),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(name: str, value: object) -> None:
    """The detail says which field, so that the gateway can be asked."""
    found = refusal(parse(body(3, "expired", **{name: value})))
    assert (found.reason, found.detail.split(":")[0]) == ("body_shape", f"data.object.{name}")


@pytest.mark.parametrize(
    "raw", [b'{"id":"e","type":"t","created_at":"c"}', b"[]", b'{"id":"e","type":"t","created_at":"c","data":{}}']
)
def test_an_event_without_its_object_is_refused(raw: bytes) -> None:
    """What is missing is named."""
    assert refusal(parse(raw)).reason == "body_shape"


def test_bytes_that_are_no_json_are_refused() -> None:
    """Also where nobody looked before."""
    assert refusal(parse(b'{"id":')).reason == "body_not_json"


@pytest.mark.parametrize("value", [[], {}, None, {"a": [1.5, "x", None]}, "text", 3])
def test_fee_breakdown_may_be_any_json(value: object) -> None:
    """It is kept for disputes and read by nobody here; null and absent are no value."""
    kept = json_or_none(event(3, "open", fee_breakdown=value).data.object.fee_breakdown)
    assert kept == (None if value is None else json.dumps(value).encode())
    assert json_or_none(event(3, "open").data.object.fee_breakdown) is None


@pytest.mark.parametrize("status", ["settled", "reversed"])
@pytest.mark.parametrize("missing", AMOUNT_FIELDS)
@pytest.mark.parametrize("how", ["absent", "null"])
def test_money_needs_all_five_amounts(status: str, missing: str, how: str) -> None:
    """A settled or reversed deposit without one of them moves nothing."""
    value = json.loads(body(9, status))
    if how == "absent":
        del value["data"]["object"][missing]
    else:
        value["data"]["object"][missing] = None
    parsed = parse(json.dumps(value).encode())
    assert isinstance(parsed, DepositEvent)
    assert check(parsed) == Refusal("money_rule", f"a deposit that is {status} lacks {missing}")


def _amounts(ordered: int, transferred: int, received: int, fee: int, amount_credited: int) -> dict[str, object]:
    return dict(zip(AMOUNT_FIELDS, (ordered, transferred, received, fee, amount_credited), strict=True))


@pytest.mark.parametrize("status", ["settled", "reversed"])
@pytest.mark.parametrize(
    "amounts",
    [
        (0, 0, 0, 0, 0),
        (0, 100, 0, 0, 0),
        (100, 0, 0, 0, 0),
        (-100, 100, -100, 0, -100),
        (100, -100, -100, 0, -100),
        (100, 100, 0, 0, 0),
        (100, 90, 100, 0, 100),
        (100, 120, 120, 0, 120),
        (100, 90, 89, 0, 89),
        (100, 100, 100, 101, -1),
        (100, 100, 100, -1, 101),
        (100, 100, 100, 3, 98),
        (100, 100, 100, 3, 96),
        (100, 100, 100, 0, 0),
    ],
)
def test_amounts_that_contradict_each_other_are_refused(status: str, amounts: tuple[int, int, int, int, int]) -> None:
    """Each half of each rule has an event that breaks it alone."""
    assert refusal(check(event(9, status, **_amounts(*amounts)))).reason == "money_rule"


@pytest.mark.parametrize("status", ["settled", "reversed"])
@pytest.mark.parametrize(
    "amounts",
    [(100, 100, 100, 0, 100), (100, 90, 90, 3, 87), (100, 120, 100, 3, 97), (100, 100, 100, 100, 0), (1, 1, 1, 0, 1)],
)
def test_amounts_that_agree_pass(status: str, amounts: tuple[int, int, int, int, int]) -> None:
    """Paid in full, in part and too much; without a fee and with a fee that eats everything."""
    assert check(event(9, status, **_amounts(*amounts))) is None


def test_other_statuses_may_have_any_amounts() -> None:
    """Only settled and reversed move money."""
    assert check(event(9, "open", **_amounts(-1, 0, 7, 9, 3))) is None


@pytest.mark.parametrize("name", ["late_slip_accepted_until", "clearing_available_at"])
@pytest.mark.parametrize("value", ["", "2026-02-30T00:00:00Z", "2026-07-01T00:00:00", "tomorrow"])
@pytest.mark.parametrize("status", ["open", "expired", "settled"])
def test_a_date_that_is_none_is_refused_by_name(name: str, value: str, status: str) -> None:
    """Whatever the status: the row keeps it in a timestamptz."""
    found = refusal(check(event(3, status, **{name: value})))
    assert found == Refusal("body_date", f"data.object.{name} is {value!r}")


def test_dates_with_a_zone_pass() -> None:
    """Both dates of the row."""
    dates = {"late_slip_accepted_until": "2026-07-02T10:04:41+07:00", "clearing_available_at": "2026-07-02T10:04:41.5Z"}
    assert check(event(3, "expired", **dates)) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cause", "gift"),
        ("cause", ""),
        ("amount_minor", 0),
        ("amount_minor", -1),
        ("amount_minor", 1.5),
        ("amount_minor", BIGINT_MAX + 1),
        ("amount_minor", None),
        ("status", "closed"),
        ("action_required", "none"),
        ("claim_id", ""),
        ("claim_id", "ก" * 171),
        ("claim_id", 7),
        ("slip_received_at", None),
        ("expected_response_at", 5),
    ],
)
def test_a_flag_that_breaks_a_rule_is_refused_by_name(name: str, value: object) -> None:
    """The append-only table would refuse it, and a bad flag means that the event cannot be trusted."""
    found = refusal(check(event(3, "open", overpayment={**FLAG, name: value})))
    assert found.reason == "overpayment_shape"
    assert found.detail.startswith(f"data.object.overpayment.{name}")


@pytest.mark.parametrize("name", [name for name in FLAG if name != "expected_response_at"])
def test_a_flag_without_a_field_is_refused(name: str) -> None:
    """All but the expected response are needed."""
    found = refusal(check(event(3, "open", overpayment={key: FLAG[key] for key in FLAG if key != name})))
    assert (found.reason, name in found.detail) == ("overpayment_shape", True)


@pytest.mark.parametrize("value", [False, 0, "", [], "flag", 3])
def test_a_flag_that_is_no_object_is_refused(value: object) -> None:
    """Something was flagged, and nobody can say what."""
    assert refusal(check(event(3, "open", overpayment=value))).reason == "overpayment_shape"


@pytest.mark.parametrize("name", ["slip_received_at", "expected_response_at"])
def test_a_date_of_a_flag_that_is_none_is_refused_by_name(name: str) -> None:
    """Zoneless times would be taken in whatever zone the session has."""
    found = refusal(check(event(3, "open", overpayment={**FLAG, name: "2026-07-01T10:31:00"})))
    assert found == Refusal("body_date", f"data.object.overpayment.{name} is '2026-07-01T10:31:00'")


def test_a_bad_flag_refuses_a_good_settlement() -> None:
    """The event is set aside whole."""
    assert refusal(check(event(9, "settled", overpayment={**FLAG, "status": "closed"}))).reason == "overpayment_shape"


@pytest.mark.parametrize(
    "flag", [FLAG, {**FLAG, "cause": "additional_transfer"}, {**FLAG, "expected_response_at": None}]
)
def test_a_good_flag_is_read(flag: dict[str, object]) -> None:
    """Both causes; the expected response may be unknown."""
    carrying = event(3, "open", overpayment=flag)
    assert check(carrying) is None
    assert flag_of(carrying) == Overpayment(**flag)  # type: ignore[arg-type]  # the sample is a plain dict


def test_no_flag_is_no_flag() -> None:
    """Absent and null are the same."""
    assert (flag_of(event(3, "open")), flag_of(event(3, "open", overpayment=None))) == (None, None)


def test_a_detail_is_bounded() -> None:
    """A value of any length is shown cut."""
    found = refusal(check(event(3, "open", overpayment={**FLAG, "cause": "x" * 100_000})))
    assert len(found.detail) < 200
