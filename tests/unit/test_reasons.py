"""Reason codes: each has a sentence in both languages and a next step."""

from typing import get_args

from schemas.reasons import REASONS, Reason


def test_every_reason_is_explained_in_both_languages() -> None:
    """No code without words, no words without a code."""
    assert set(REASONS) == set(get_args(Reason))
    for reason, words in REASONS.items():
        assert words.en.endswith("."), reason
        assert words.th, reason
        assert any("฀" <= letter <= "๿" for letter in words.th), reason
        assert words.next_step.endswith("."), reason
