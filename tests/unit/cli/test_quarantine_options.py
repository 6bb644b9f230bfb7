"""How rows are chosen, and how what came from outside is shown."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallyhook.cli.escaping import escaped, escaped_bytes
from tallyhook.cli.quarantine_options import known_reason, moment
from tallyhook.errors import UsageError

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90m", NOW - timedelta(minutes=90)),
        ("12h", NOW - timedelta(hours=12)),
        ("3d", NOW - timedelta(days=3)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T10:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
        ("2026-03-01T10:00+07:00", datetime(2026, 3, 1, 3, tzinfo=UTC)),
    ],
)
def test_a_moment_is_a_date_or_an_age(text: str, expected: datetime) -> None:
    """Without a zone it is UTC."""
    assert moment("--since", text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "3w", "-1h", "2026-02-30", "999999d"])
def test_what_is_no_moment_is_named(text: str) -> None:
    """With the option and how it is written."""
    with pytest.raises(UsageError, match="--until"):
        moment("--until", text, NOW)


def test_a_reason_must_exist() -> None:
    """A typing error would otherwise look like an empty quarantine."""
    assert known_reason("money_rule") == "money_rule"
    assert known_reason(None) is None
    with pytest.raises(UsageError, match="money_rule"):
        known_reason("money_rules")


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    """Each character prints, or is a line break that was asked for."""
    assert escaped(text).isprintable()
    assert escaped(text, lines=True).replace("\n", "").isprintable()


@given(st.binary())
def test_any_bytes_can_be_shown(raw: bytes) -> None:
    """Also those that are no UTF-8."""
    assert escaped_bytes(raw).isprintable()


def test_letters_stay() -> None:
    """Thai is shown as Thai."""
    assert escaped("ก้อนที่ 2 é 😿") == "ก้อนที่ 2 é 😿"
    assert escaped_bytes(b"a\xff\x00\n") == "a\\xff\\x00\\n"
