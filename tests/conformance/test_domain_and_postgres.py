"""What the pure rules accept, PostgreSQL takes: text, derived jsonb, instants and JSON equality, by asking it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sinks.domain.body import NESTING_MAX, read_text
from sinks.domain.body_faults import DIGITS_MAX, EXPONENT_MAX
from sinks.domain.decision import Refusal
from sinks.domain.instants import instant
from sinks.domain.overpayment import same_json

STRUCTURE = [b"{", b"}", b"[", b"]", b'"', b":", b",", b" ", b"\t", b"\n", b"//", b"'"]
LITERALS = [b"0", b"1", b"-", b"+", b".", b"e", b"E", b"true", b"null", b"NaN", b"1e400", b"1e9999", b"a"]
ESCAPES = [b"\\", b"\\\\", rb"\n", rb"\u0000", rb"\u000", rb"\ud83d", rb"\ude3f", rb"\u0e2a", b"u0000"]
BYTES = [b"\xf0\x9f\x98\xbf", b"\xed\xa0\xbd", b"\xff", b"\x00", b"\x1f", b"\x7f", b"\xc2\x85", b"\xef\xbb\xbf"]
PIECES = STRUCTURE + LITERALS + ESCAPES + BYTES


@pytest.fixture(scope="module")
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    """One connection in a time zone that is not UTC, so that a text without a zone would be seen."""
    with psycopg.connect(database_url, autocommit=True, options="-c timezone=Asia/Bangkok") as opened:
        yield opened


def jsonb_of(connection: psycopg.Connection, text: str) -> str | None:
    """The text as PostgreSQL shows it after reading it as jsonb; None where it refuses."""
    try:
        row = connection.execute("SELECT %s::text::jsonb::text", (text,)).fetchone()
    except psycopg.DataError:
        return None
    assert row is not None
    shown: str = row[0]
    return shown


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join),
    st.sampled_from([b'{"k":%s}', b'{"k":"%s"}', b'{"%s":1}', b'{"k":[%s,2]}', b'{"k":1%s}', b"%s"]),
)
def test_what_the_body_check_takes_is_jsonb(connection: psycopg.Connection, pieces: bytes, place: bytes) -> None:
    """A virtual jsonb column never fails later: every accepted text is read, and as the same value."""
    raw = place % pieces
    text = read_text(raw)
    if isinstance(text, Refusal):
        return
    shown = jsonb_of(connection, text)
    assert shown is not None, f"accepted, but not jsonb: {text!r}"
    assert same_json(raw, shown.encode())


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":' * NESTING_MAX + b"1" + b"}" * NESTING_MAX,
        b'{"a":' + b"9" * DIGITS_MAX + b"}",
        b'{"a":0.' + b"1" * (DIGITS_MAX - 2) + b"}",
        f'{{"a":{"9" * (DIGITS_MAX - 1)}e{EXPONENT_MAX}}}'.encode(),
        f'{{"a":0.{"1" * (DIGITS_MAX - 2)}e-{EXPONENT_MAX}}}'.encode(),
        json.dumps({"note": "สลิปไม่ชัด 😿 é\u2028\ufffe\U0010ffff"}).encode(),
        json.dumps({"note": "สลิปไม่ชัด 😿 é\u2028\ufffe\U0010ffff"}, ensure_ascii=False).encode(),
    ],
)
def test_the_bounds_of_the_body_check_are_within_jsonb(connection: psycopg.Connection, raw: bytes) -> None:
    """What lies on a bound is still read."""
    text = read_text(raw)
    assert isinstance(text, str)
    shown = jsonb_of(connection, text)
    assert shown is not None
    assert same_json(raw, shown.encode())


@pytest.mark.parametrize(
    "raw", [rb'{"a":"\u0000"}', rb'{"a":"\ud83d"}', rb'{"\ude3f":1}', b'{"a":1e131072}', b'{"a":1e-16384}']
)
def test_what_is_refused_as_text_or_number_postgresql_refuses_too(connection: psycopg.Connection, raw: bytes) -> None:
    """The check is there for a reason."""
    assert isinstance(read_text(raw), Refusal)
    assert jsonb_of(connection, raw.decode()) is None


DATE_TIMES = st.builds(
    lambda year, month, day, join, hour, minute, second, fraction, zone: (
        f"{year:04}-{month}-{day}{join}{hour}:{minute}:{second}{fraction}{zone}"
    ),
    st.sampled_from([0, 1, 1900, 1969, 2024, 2025, 2026, 9999]),
    st.sampled_from(["00", "01", "02", "06", "12", "13"]),
    st.sampled_from(["00", "01", "28", "29", "30", "31", "32"]),
    st.sampled_from(["T", "t", " "]),
    st.sampled_from(["00", "10", "23", "24"]),
    st.sampled_from(["00", "59", "60"]),
    st.sampled_from(["00", "15", "59", "60", "61"]),
    st.just("") | st.text("0123456789", min_size=1, max_size=12).map(lambda digits: "." + digits),
    st.sampled_from(["Z", "z", "+00:00", "-00:00", "+07:00", "-08:30", "+15:59", "-15:59", "+16:00", "+07:60"]),
)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(DATE_TIMES)
def test_an_instant_is_the_same_in_postgresql(connection: psycopg.Connection, text: str) -> None:
    """Every date-time that the rules take is a timestamptz, and the same one to the microsecond."""
    moment = instant(text)
    if moment is None:
        return
    row = connection.execute("SELECT extract(epoch FROM %s::text::timestamptz)::text", (text,)).fetchone()
    assert row is not None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    seconds, microseconds = since.days * 86_400 + since.seconds, since.microseconds
    assert int(row[0].replace(".", "")) == seconds * 1_000_000 + microseconds, text


JSON_TEXTS = st.recursive(
    st.sampled_from(
        ["1", "1.0", "1e0", "10e-1", "-0", "0.00", "true", "false", "null", '"1"', '"ก"', '"\\u0e01"', "2"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[" + ",".join(items) + "]")
        | st.lists(st.tuples(st.sampled_from(["a", "b", "\\u0061"]), inner), max_size=3).map(
            lambda members: "{" + ",".join(f'"{key}": {value}' for key, value in members) + "}"
        )
    ),
    max_leaves=5,
)


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON_TEXTS, JSON_TEXTS)
def test_json_is_compared_as_jsonb_compares_it(connection: psycopg.Connection, one: str, other: str) -> None:
    """A flag that PostgreSQL holds equal is known, one that it holds unequal is a collision."""
    row = connection.execute("SELECT %s::text::jsonb = %s::text::jsonb", (one, other)).fetchone()
    assert row is not None
    assert same_json(one.encode(), other.encode()) is row[0], (one, other)
