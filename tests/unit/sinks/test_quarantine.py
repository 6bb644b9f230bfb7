"""The bound on quarantine, and text that PostgreSQL keeps."""

import json

from hypothesis import given
from hypothesis import strategies as st

from sinks.quarantine import WINDOW_EVENTS, QuarantineWindow, safe_headers, safe_text


@given(st.lists(st.booleans(), max_size=2500), st.integers(1, 30))
def test_the_window_counts_the_last_thousand(outcomes: list[bool], limit: int) -> None:
    """Exceeded is more than the limit among the last 1,000, whatever came before."""
    window = QuarantineWindow(limit)
    for outcome in outcomes:
        window.note(quarantined=outcome)
    assert window.exceeded == (sum(outcomes[-WINDOW_EVENTS:]) > limit)


def test_a_copy_moves_apart_until_it_is_adopted() -> None:
    """A transaction that is rolled back leaves the window as it was."""
    window = QuarantineWindow(1)
    tried = window.copy()
    for _ in range(2):
        tried.note(quarantined=True)
    assert (window.exceeded, tried.exceeded) == (False, True)
    window.adopt(tried)
    assert window.exceeded


@given(st.binary())
def test_any_bytes_become_text(raw: bytes) -> None:
    """What comes out has no NUL and is UTF-8; readable text is left alone."""
    text = safe_text(raw)
    assert "\0" not in text
    text.encode()


def test_readable_text_is_left_alone() -> None:
    """Thai and emoji stay; NUL, lone surrogates and broken bytes become visible."""
    assert safe_text("สลิป 😿") == "สลิป 😿"
    assert safe_text("a\0b\ud800") == "a\\x00b\\ud800"
    assert safe_text(b"\xffx") == "\\xffx"


def test_the_first_of_a_repeated_header_counts() -> None:
    """As at the door; a header without a value is left out."""
    headers = [("a", b"1"), ("a", b"2"), ("b", None), ("c", "x\0")]
    assert json.loads(safe_headers(headers)) == {"a": "1", "c": "x\\x00"}
