"""`docs/settings.md` says what the program does."""

from pathlib import Path

import pytest

from tallyhook.operations.settings_page import main, page
from tallyhook.settings import describe
from tests.unit.packaging.tree import ROOT


def test_the_page_is_in_step() -> None:
    """The page in the repository is what the program would write now."""
    written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == page(), "run `python -m tallyhook.operations.settings_page`"


def test_every_setting_has_its_row() -> None:
    """Each variable stands at the beginning of one row, with its meaning; secrets are marked."""
    lines = page().splitlines()
    for row in describe():
        (line,) = (line for line in lines if line.startswith(f"| `{row.variable}` |"))
        assert row.meaning.replace("|", "\\|") in line
        assert ("**(secret)**" in line) == row.secret


def test_check_tells_a_stale_page_from_a_fresh_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--check` ends with 1 for a missing or changed page and changes nothing; writing it makes it right."""
    file = tmp_path / "settings.md"
    assert main(["--check", str(file)]) == 1
    assert not file.exists()
    assert main([str(file)]) == 0
    assert main(["--check", str(file)]) == 0
    file.write_text(file.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert main(["--check", str(file)]) == 1
    assert "out of step" in capsys.readouterr().err
