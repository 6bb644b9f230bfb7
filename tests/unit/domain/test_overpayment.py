"""Overpayment flags: the same claim seen twice either agrees or is a collision."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.domain.decision import FlagDraft
from sinks.domain.overpayment import read_flag, same_flag, same_json
from tests.unit.domain.samples import FLAG, event


def flag(version: int = 11, /, **changes: object) -> FlagDraft:
    """The flag as an event of `version` carries it."""
    draft = read_flag(event(version, "slip_received", overpayment={**FLAG, **changes}))
    assert isinstance(draft, FlagDraft), draft
    return draft


def test_a_flag_is_drafted_with_its_observation() -> None:
    """The observed version is the event's, times are instants, the JSON is as sent."""
    draft = flag(11, slip_received_at="2026-07-01T17:31:00.5+07:00", note="ลูกค้า")
    assert (draft.pg_deposit_id, draft.observed_deposit_version) == ("dep_7", 11)
    assert draft.slip_received_at == datetime(2026, 7, 1, 10, 31, 0, 500_000, tzinfo=UTC)
    assert draft.expected_response_at == datetime(2026, 7, 2, 10, 31, tzinfo=UTC)
    assert json.loads(draft.raw) == {**FLAG, "slip_received_at": "2026-07-01T17:31:00.5+07:00", "note": "ลูกค้า"}


def test_the_observed_version_does_not_count() -> None:
    """The same claim comes again in every newer snapshot."""
    assert same_flag(flag(11), flag(12))


@pytest.mark.parametrize(
    "changes",
    [
        {"cause": "additional_transfer"},
        {"amount_minor": 25_001},
        {"slip_received_at": "2026-07-01T10:31:01Z"},
        {"slip_received_at": "2026-07-01T17:31:00+07:00"},
        {"expected_response_at": "2026-07-02T10:31:01Z"},
        {"expected_response_at": None},
        {"note": "new"},
        {"claim_id": "clm_8"},
    ],
)
def test_other_content_is_a_collision(changes: dict[str, object]) -> None:
    """Any difference in the JSON counts, also another spelling of the same instant."""
    assert not same_flag(flag(), flag(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"pg_deposit_id": "dep_8"},
        {"slip_received_at": datetime(2026, 7, 1, 10, 31, 1, tzinfo=UTC)},
        {"expected_response_at": None},
        {"raw": b"{}"},
    ],
)
def test_each_stored_column_counts(changes: dict[str, object]) -> None:
    """Also where the others agree."""
    assert not same_flag(flag(), replace(flag(), **changes))  # type: ignore[arg-type]  # one field at a time


@pytest.mark.parametrize("name", ["claim_id", "cause", "amount_minor", "status", "action_required"])
def test_each_stored_member_of_the_flag_counts(name: str) -> None:
    """Also where the raw JSON agrees."""
    stored = flag()
    value = 1 if name == "amount_minor" else "other"
    assert not same_flag(stored, replace(stored, flag=msgspec.structs.replace(stored.flag, **{name: value})))


def test_the_text_of_a_time_inside_the_flag_is_compared_as_json_only() -> None:
    """Stored rows give back instants; their texts are in the JSON."""
    stored = flag()
    respelled = msgspec.structs.replace(stored.flag, slip_received_at="2026-07-01T10:31:00+00:00")
    assert same_flag(stored, replace(stored, flag=respelled))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[2]}', '{ "b" : [ 2.0 ], "a" : 1.000 }'),
        ("1e2", "100"),
        ("-0", "0"),
        ('{"a":1,"a":2}', '{"a":2}'),
        ('"\\u0e2a\\ud83d\\ude3f"', '"ส😿"'),
        ("9007199254740993", "9007199254740993.0"),
        ("true", " true"),
    ],
)
def test_json_that_jsonb_holds_equal(one: str, other: str) -> None:
    """Order, white space, spelling and overwritten members do not count."""
    assert same_json(one.encode(), other.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "true"),
        ("0", "false"),
        ("1", '"1"'),
        ("null", "false"),
        ("[]", "{}"),
        ("[1,2]", "[2,1]"),
        ("[1]", "[1,1]"),
        ("[1,1]", "[1]"),
        ('{"a":1}', '{"a":1,"b":null}'),
        ('{"a":1,"b":null}', '{"a":1}'),
        ('{"a":[{"b":1}]}', '{"a":[{"b":true}]}'),
        ('{"a":1}', '{"b":1}'),
        ("9007199254740993", "9007199254740992"),
        ("0.1", "0.1000000000000000055511151231257827"),
        ('"é"', '"e\u0301"'),
        ("null", '"null"'),
    ],
)
def test_json_that_jsonb_holds_unequal(one: str, other: str) -> None:
    """Types, order in arrays, every digit and every code point count."""
    assert not same_json(one.encode(), other.encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(JSON, st.integers(0, 4))
def test_another_spelling_is_the_same_value(value: object, indent: int) -> None:
    """Escapes, white space and the order of members change nothing."""
    spelled = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    value = json.loads(spelled)
    one, other = json.dumps(value, sort_keys=True), json.dumps(value, ensure_ascii=False, indent=indent)
    assert same_json(one.encode(), other.encode())
