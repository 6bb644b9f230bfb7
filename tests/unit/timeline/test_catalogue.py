"""The catalogues: the same names and blanks in every language, all of them used, none missing."""

import re
from pathlib import Path

import pytest

import tallyhook.cli
import tallyhook.operations.timeline as package
from tallyhook.operations.timeline.catalogue import LANGUAGES, Catalogue, catalogue

SOURCES = sorted(
    [
        *Path(package.__file__).parent.glob("*.py"),
        *Path(tallyhook.cli.__file__).parent.glob("timeline*.py"),
    ]
)
GROUPS = (
    "withdrawal.status.",
    "deposit.status.",
    "deposit.status_with_late_slip.",
    "found.",
    "months.",
    "support.column.",
    "support.",
    "unfinished.",
)
"""Texts whose last part is chosen while it runs: by status, kind of key, form of date, column, or table."""


def test_the_languages_have_the_same_names_and_blanks() -> None:
    """A text that one language lacks, or a blank that is spelt otherwise, fails here and not before a customer."""
    thai = catalogue("th").blanks
    for language in LANGUAGES:
        assert catalogue(language).blanks == thai, language


def test_every_name_in_the_code_is_in_the_catalogue() -> None:
    """And every text of the catalogue is named in the code, or belongs to a group that is chosen from."""
    code = "\n".join(source.read_text(encoding="utf-8") for source in SOURCES)
    named = set(re.findall(r'"([a-z_]+(?:\.[a-z_]+)+)"', code)) - {"withdrawal.filled"}
    named = {name for name in named if not name.endswith((".sql", ".toml"))}
    known = set(catalogue("th").blanks)
    groups = {group.removesuffix(".") for group in GROUPS}
    assert {name for name in named if name not in known | groups and not name.startswith("tallyhook")} == set()
    unnamed = {name for name in known - named if not name.startswith(GROUPS)}
    assert unnamed == set()


@pytest.mark.parametrize("form", ["long", "short"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_year_has_twelve_months(language: str, form: str) -> None:
    """Each with a name of its own."""
    names = catalogue("th" if language == "th" else "en").text(f"months.{form}").split()
    assert len(set(names)) == 12


def test_every_thai_text_is_thai() -> None:
    """Except those that are nothing but blanks, or a name that is the same everywhere."""
    words = catalogue("th")
    same = {"time.date", "time.other_day", "time.ambiguous", "support.column.key"}
    movements = {"transaction.line", "transaction.line_moved"}
    for name, blanks in words.blanks.items():
        text = words.text(name, **dict.fromkeys(blanks, ""))
        assert name in same | movements or re.search("[ก-๙]", text), name


def test_a_blank_that_is_not_filled_is_an_error() -> None:
    """No page shows a customer a hole."""
    words = Catalogue("en", {"a": "{amount} THB"})
    with pytest.raises(KeyError):
        words.text("a", sum="1")
    with pytest.raises(KeyError):
        words.text("b")
