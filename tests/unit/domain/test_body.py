"""The check of bytes: what passes is text that PostgreSQL keeps and reads as jsonb, and nothing else passes."""

import json
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.domain.body import NESTING_MAX, read_text
from sinks.domain.body_faults import DIGITS_MAX, EXPONENT_MAX
from sinks.domain.decision import Refusal
from tests.unit.domain.samples import body, refusal

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
)
KEYS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=20)
OBJECTS = st.dictionaries(KEYS, VALUES)


@given(OBJECTS, st.booleans(), st.sampled_from([None, 1]))
def test_every_clean_object_is_kept_as_it_is(value: dict[str, object], ascii_only: bool, indent: int | None) -> None:
    """Nothing that PostgreSQL takes is set aside, escaped or not, and no character changes."""
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert read_text(raw) == raw.decode()


@pytest.mark.parametrize(
    "note", ["สลิปไม่ชัด 😿 é", "\\u0000", "\\\\u0000 \\ud800", "a: e5, [e7], {", "\u007f\u2028\ufffe"]
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_text_that_only_looks_dangerous_passes(note: str, ascii_only: bool) -> None:
    """An escaped backslash before `u0000`, a surrogate pair, and letters that look like exponents are harmless."""
    raw = json.dumps({"note": note}, ensure_ascii=ascii_only).encode()
    assert read_text(raw) == raw.decode()


def test_white_space_around_the_object_passes() -> None:
    """JSON allows it."""
    assert read_text(b" \r\n\t{ } \n") == " \r\n\t{ } \n"


@pytest.mark.parametrize(
    ("metadata", "detail"),
    [
        (rb'{"note":"a\u0000b"}', "data.object.metadata.note has a NUL"),
        (rb'{"note":"\\\u0000"}', "data.object.metadata.note has a NUL"),
        (rb'{"notes":["a",{"x":"\u0000"}]}', "data.object.metadata.notes.1.x has a NUL"),
        (rb'{"note":"\ud83d"}', "data.object.metadata.note has a lone surrogate"),
        (rb'{"note":"\ud83dabcdef"}', "data.object.metadata.note has a lone surrogate"),
        (rb'{"note":"\ud83d\u0041"}', "data.object.metadata.note has a lone surrogate"),
        (rb'{"note":"\uDE3F\uD83D"}', "data.object.metadata.note has a lone surrogate"),
        (rb'{"note":"\u0000","note":"clean"}', "data.object.metadata.note has a NUL"),
        (rb'{"no\u0000te":1}', "data.object.metadata has a key that has a NUL"),
        (rb'{"no\udfffte":1}', "data.object.metadata has a key that has a lone surrogate"),
    ],
)
def test_text_that_postgresql_refuses_is_named_by_its_path(metadata: bytes, detail: str) -> None:
    """The reason names the field, so that the gateway can be asked; overwritten members are looked at too."""
    raw = body(3, "open", metadata="@").replace(b'"@"', metadata)
    assert read_text(raw) == Refusal("body_text", detail)


def test_a_raw_nul_is_named_by_its_place() -> None:
    """It is not even JSON, but the person who looks wants to know that it is a NUL."""
    assert read_text(b'{"a":"\0"}') == Refusal("body_text", "byte 6 is a NUL")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"a":1',
        b'{"a":1}x',
        b'{"a":1}{}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b"\xef\xbb\xbf{}",
        b'{"a":"\xff"}',
        b'{"a":"\xc0\x80"}',
        b'{"a":"\xed\xa0\xbd"}',
        b'{"a":"\xf4\x90\x80\x80"}',
        b'{"a":"tab\there"}',
        rb'{"a":"\x41"}',
        rb'{"a":"\u12G4"}',
        b'{"a":01}',
        b'{"a":+1}',
        b'{"a":.5}',
        b'{"a":1.}',
        b'{"a":1e}',
        b'{"a":0x1}',
        b'{"a":[1,]}',
        b'{"a":1,}',
        b"{'a':1}",
        b"{a:1}",
        b'{"a":True}',
        b'{"a":1 /* one */}',
        b"\xff\xfe{\x00",
        b"[1,",
        b'"open',
    ],
)
def test_what_is_no_strict_json_is_refused(raw: bytes) -> None:
    """The inbox's jsonb column is derived later, and must never fail then."""
    assert refusal(read_text(raw)).reason in ("body_not_json", "body_text")


@pytest.mark.parametrize("raw", [b"[]", b"[1,2]", b'"text"', b"null", b"12", b"true"])
def test_a_body_that_is_not_an_object_is_refused(raw: bytes) -> None:
    """An event is an object."""
    assert read_text(raw) == Refusal("body_shape", "the event is not an object")


def _nested_arrays(levels: int) -> bytes:
    return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def _nested_objects(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


@pytest.mark.parametrize("nested", [_nested_arrays, _nested_objects])
def test_nesting_is_bounded(nested: Callable[[int], bytes]) -> None:
    """The bound itself passes, one more does not, and sixty thousand end no process."""
    deepest = nested(NESTING_MAX)
    assert read_text(deepest) == deepest.decode()
    with_brackets_beside_it = deepest[:-1] + b',"b":[[],{},"["]}'
    assert read_text(with_brackets_beside_it) == with_brackets_beside_it.decode()
    too_deep = Refusal("body_shape", f"nested more than {NESTING_MAX} levels")
    assert read_text(nested(NESTING_MAX + 1)) == too_deep
    assert read_text(nested(60_000)) == too_deep


def test_the_bound_of_nesting_leaves_room_on_the_stack() -> None:
    """A body at the bound, whose fault lies at the bottom, is looked through even from a deep call."""

    def below(frames: int) -> str | Refusal:
        deepest = _nested_objects(NESTING_MAX).replace(b"1}", rb'"\u0000"}')
        return read_text(deepest) if frames == 0 else below(frames - 1)

    found = refusal(below(sys.getrecursionlimit() // 2))
    assert found.reason == "body_text"
    assert found.detail.endswith("has a NUL")
    assert len(found.detail) < 250


def test_many_brackets_side_by_side_or_in_text_pass() -> None:
    """Only depth is bounded, not their number."""
    for raw in (
        b'{"a":[' + b"{}," * 20_000 + b"1]}",
        b'{"a":"' + b"[" * 60_000 + b'"}',
        b'{"a":"' + b'\\"[' * 9_000 + b'"}',
    ):
        assert read_text(raw) == raw.decode()


@pytest.mark.parametrize("place", ['{"a":%s}', '{"a": %s}', '{"a":[%s]}', '{"a":[1, %s, 2]}', '{"b":"x","a":\n%s}'])
def test_numbers_are_bounded_wherever_they_stand(place: str) -> None:
    """PostgreSQL's numeric ends somewhere, and a few bytes must not become a hundred thousand digits."""
    for number in (f"1e{EXPONENT_MAX}", f"-1.5E-{EXPONENT_MAX}", "2E+0005", "9" * DIGITS_MAX, "1.7976931348623157e308"):
        assert read_text((place % number).encode()) == place % number
    for number in (f"1e{EXPONENT_MAX + 1}", f"-1.5E-{EXPONENT_MAX + 1}", "2e+131072", "1e" + "9" * 5_000):
        assert refusal(read_text((place % number).encode())).detail.endswith(f"has an exponent beyond {EXPONENT_MAX}")
    for number in ("9" * (DIGITS_MAX + 1), "0." + "1" * DIGITS_MAX, "-" + "9" * 5_000):
        assert refusal(read_text((place % number).encode())).detail.endswith(f"has more than {DIGITS_MAX} digits")


def test_a_number_out_of_bounds_is_named_by_its_path() -> None:
    """The reason names the field."""
    raw = body(3, "open", metadata={"limits": [1, 2]}).replace(b"2]", b"2e999]")
    assert read_text(raw) == Refusal("body_shape", "data.object.metadata.limits.1 has an exponent beyond 400")


@given(
    st.binary(max_size=60)
    | st.text(max_size=40).map(lambda text: ('{"a":"' + text + '"}').encode("utf-8", "surrogatepass"))
)
def test_no_bytes_raise(raw: bytes) -> None:
    """Whatever comes, there is an answer, and accepted text is JSON to another reader too."""
    found = read_text(raw)
    if isinstance(found, str):
        assert isinstance(json.loads(found), dict)


SURROGATES = [rb"\ud83d", rb"\ude3f", rb"\uD83D", rb"\uDE3F", b"\xf0\x9f\x98\xbf"]
NULS = [rb"\u0000", b"u0000", b"0"]
OTHERS = [rb"\u0e2a", rb"\\", rb"\"", rb"\n", rb"\u005c", b"ud83d", b"a"]


@given(
    st.lists(st.sampled_from(SURROGATES + NULS + OTHERS)).map(b"".join),
    st.sampled_from([b'{"a":"%s"}', b'{"%s":1}', b'{"a":[{"b":"%s"}]}']),
)
def test_escapes_are_judged_as_another_reader_decodes_them(escapes: bytes, place: bytes) -> None:
    """Exactly the texts that hold a NUL or a lone surrogate once decoded are refused, however they are escaped."""
    raw = place % escapes
    decoded: str = json.loads(b'"' + escapes + b'"')
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in decoded):
        assert refusal(read_text(raw)).reason == "body_text"
    else:
        assert read_text(raw) == raw.decode()
