"""The envelope: what routes an event, and which code each fault has."""

import json
from enum import Enum
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingress.envelope import BadEnvelope, Envelope, read
from schemas.reasons import Reason

GOOD: dict[str, Any] = {
    "id": "evt_1",
    "object": "event",
    "type": "deposit.settled",
    "livemode": True,
    "created_at": "2026-01-02T03:04:05Z",
    "sequence": 7,
    "account": {"merchant_id": "mer_1", "white_label_id": None},
    "data": {"object": {"id": "dep_1", "object": "deposit_order", "version": 3, "status": "settled"}},
}


class Sentinel(Enum):
    """A value that no JSON has; its name is the same in every process, as test ids must be."""

    ABSENT = "absent"


ABSENT = Sentinel.ABSENT


def changed(path: str, value: object) -> bytes:
    """GOOD with the member at a dotted path replaced, or removed for ABSENT."""
    whole = json.loads(json.dumps(GOOD))
    *above, last = path.split(".")
    at = whole
    for name in above:
        at = at[name]
    at[last] = value
    if value is ABSENT:
        del at[last]
    return json.dumps(whole).encode()


def reason_of(body: bytes) -> str:
    """The code of a body's fault; fails when it has none."""
    with pytest.raises(BadEnvelope) as caught:
        read(body, max_id_bytes=512)
    return caught.value.reason


def test_a_sound_envelope_is_read_whole() -> None:
    """Every member that routing and headers need."""
    expected = Envelope(
        id="evt_1",
        type="deposit.settled",
        livemode=True,
        merchant="mer_1",
        sequence=7,
        created_at="2026-01-02T03:04:05Z",
        object_id="dep_1",
        kind="deposit_order",
        version=3,
        status="settled",
    )

    assert expected == read(json.dumps(GOOD).encode(), max_id_bytes=512)


TEXTS = {
    "id": "envelope_id",
    "type": "envelope_type",
    "created_at": "envelope_created_at",
    "account.merchant_id": "envelope_merchant",
    "data.object.id": "envelope_object_id",
    "data.object.object": "envelope_object_kind",
    "data.object.status": "envelope_status",
}
NO_TEXTS: list[object] = [
    ABSENT,
    None,
    "",
    1,
    True,
    [],
    {},
    "x" * 513,
    "ก" * 171,
    "a\u0000b",
    "a\nb",
    "\x7f",
    "\ud800",
    "a\udc00",
]


@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.parametrize("value", NO_TEXTS, ids=lambda v: ascii(v)[:12])
def test_a_text_is_present_bounded_and_clean(path: str, value: object) -> None:
    """Ids become record keys, headers and columns: no surrogates, no control characters, not empty, not long."""
    assert reason_of(changed(path, value)) == TEXTS[path]


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_of_the_allowed_length_is_kept_as_it_is(path: str) -> None:
    """512 bytes of any script."""
    read(changed(path, "ก" * 170 + "é"), max_id_bytes=512)


NUMBERS = {"sequence": "envelope_sequence", "data.object.version": "envelope_version"}


@pytest.mark.parametrize("path", NUMBERS)
@pytest.mark.parametrize(
    "value", [ABSENT, None, -1, 2**63, 2**64, 2**70, 1.0, 1.5, 1e3, True, False, "1", [], {}], ids=repr
)
def test_a_number_is_whole_and_fits_63_bits(path: str, value: object) -> None:
    """true is no 1, 1.0 is no 1, "1" is no 1."""
    assert reason_of(changed(path, value)) == NUMBERS[path]


@pytest.mark.parametrize("path", NUMBERS)
@pytest.mark.parametrize("value", [0, 1, 2**53 + 1, 2**63 - 1])
def test_the_whole_range_of_numbers_is_exact(path: str, value: int) -> None:
    """No rounding on the way."""
    envelope = read(changed(path, value), max_id_bytes=512)

    assert value == (envelope.sequence if path == "sequence" else envelope.version)


@pytest.mark.parametrize("value", [ABSENT, None, 0, 1, "true", [], {}], ids=repr)
def test_livemode_is_a_boolean(value: object) -> None:
    """Live and test must not be guessed."""
    assert reason_of(changed("livemode", value)) == "envelope_livemode"


@pytest.mark.parametrize("kind", ["balance_transaction", "something_new"])
def test_other_kinds_may_lack_version_and_status(kind: str) -> None:
    """Balance transactions have none; an unknown kind passes through."""
    for entity in ({}, {"version": None, "status": None}):
        body = changed("data.object", {"id": "btxn_1", "object": kind} | entity)
        envelope = read(body, max_id_bytes=512)
        assert (envelope.version, envelope.status) == (None, "")


@pytest.mark.parametrize(
    ("entity", "reason"),
    [
        ({"version": "3"}, "envelope_version"),
        ({"version": -1}, "envelope_version"),
        ({"version": True}, "envelope_version"),
        ({"status": 1}, "envelope_status"),
        ({"status": ""}, "envelope_status"),
    ],
)
def test_a_version_or_status_that_is_there_must_be_one(entity: dict[str, object], reason: str) -> None:
    """Also where it may be absent."""
    body = changed("data.object", {"id": "x_1", "object": "something_new"} | entity)

    assert reason_of(body) == reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "envelope_not_json"),
        (b"\x1f\x8b\x08\x00", "envelope_not_json"),
        (b"\xef\xbb\xbf{}", "envelope_not_json"),
        (b"{} {}", "envelope_not_json"),
        (b'{"id":NaN}', "envelope_not_json"),
        (b'{"id":"a","x":Infinity}', "envelope_not_json"),
        (b"{'id':1}", "envelope_not_json"),
        (b"[" * 100_000, "envelope_not_json"),
        (b"[]", "envelope_not_object"),
        (b"null", "envelope_not_object"),
        (b'"text"', "envelope_not_object"),
        (b"{}", "envelope_id"),
    ],
)
def test_what_is_no_event_has_its_code(body: bytes, reason: str) -> None:
    """JSON as RFC 8259 has it, and an object."""
    assert reason_of(body) == reason


@pytest.mark.parametrize("path", ["account", "data", "data.object"])
@pytest.mark.parametrize("value", [ABSENT, None, [], "x", 1], ids=repr)
def test_missing_parts_are_told_by_the_member_that_is_missed(path: str, value: object) -> None:
    """No error leaves the reader but its own."""
    assert reason_of(changed(path, value)) == ("envelope_merchant" if path == "account" else "envelope_object_id")


@pytest.mark.parametrize(
    "extra",
    [
        b'"note":"\\ud800"',
        b'"note":"\\u0000"',
        b'"note":"\xff\xfe"',
        b'"n":123456789012345678901234567890',
        b'"n":1e400',
        b'"a":{"id":"other"}',
        b'"x":' + b"[" * 500 + b"]" * 500,
    ],
)
def test_what_lies_deeper_is_not_judged_here(extra: bytes) -> None:
    """The bytes go on as they are; the sink has the rules."""
    body = json.dumps(GOOD).encode()[:-1] + b"," + extra + b"}"

    assert read(body, max_id_bytes=512).object_id == "dep_1"


def test_of_a_repeated_member_the_last_counts() -> None:
    """As for every reader behind the door."""
    body = json.dumps(GOOD).encode()[:-1] + b',"id":"evt_2"}'

    assert read(body, max_id_bytes=512).id == "evt_2"


def test_what_could_be_read_comes_with_the_fault() -> None:
    """A dead letter keeps the object's key and the sequence."""
    with pytest.raises(BadEnvelope) as caught:
        read(changed("data.object.version", "91"), max_id_bytes=512)

    fields = caught.value.fields
    assert (fields.object_id, fields.sequence, fields.id) == ("dep_1", 7, "evt_1")
    assert "91" not in caught.value.detail


CODES = {"", *(reason for reason in get_args(Reason) if reason.startswith("envelope_"))}


def outcome_of(body: bytes) -> str:
    """The code of a body's fault, empty for a sound one."""
    try:
        read(body, max_id_bytes=512)
    except BadEnvelope as bad:
        return bad.reason
    return ""


@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(body: bytes) -> None:
    """Whatever comes is an envelope or has a code."""
    assert outcome_of(body) in CODES


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(path=st.sampled_from([*TEXTS, *NUMBERS, "livemode", "account", "data", "data.object"]), value=json_values)
def test_no_json_value_breaks_the_reader(path: str, value: object) -> None:
    """Any value anywhere in the envelope."""
    assert outcome_of(changed(path, value)) in CODES
