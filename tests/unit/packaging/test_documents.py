"""The documents name what there is: topics, effects, settings, commands and files."""

import re
from pathlib import Path

import pytest
from typer.main import get_command

from ingress.refusals import PROBLEMS
from schemas.effects import EFFECT_TYPES
from schemas.headers import EventHeaders, verdict_headers
from schemas.topics import DAY_MS, TopicNames
from tallyhook.settings import describe
from tests.unit.packaging.tree import ROOT

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "CHANGELOG.md", ROOT / "helm" / "tallyhook" / "README.md"])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def _text(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _rows(text: str) -> dict[str, list[str]]:
    """Rows of tables by the code in their first cell."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `"):
            found[cells[0].strip("`| ")] = cells[1:]
    return found


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Each link to a file of the repository, and to a heading in it, is good."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), target
        if anchor:
            assert anchor in _anchors(file), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_variables_and_commands_exist(page: Path) -> None:
    """Each variable is a setting, each `tallyhook ...` in code a command."""
    from tallyhook.cli.main import app

    text = page.read_text(encoding="utf-8")
    known = {row.variable for row in describe()}
    known |= {f"{row.variable}_FILE" for row in describe() if row.secret} | {"TALLYHOOK_HELM"}
    named = set(re.findall(r"TALLYHOOK_[A-Z0-9_]*[A-Z0-9]", text)) - {"TALLYHOOK"}
    assert named - known == set()
    commands = getattr(get_command(app), "commands")  # noqa: B009  a group's type is not public
    assert set(re.findall(r"`tallyhook ([a-z]+)", text)) - set(commands) == set()


def test_topics() -> None:
    """The table of topics is the one the program makes, with cleanup and retention."""
    rows = _rows(_text("topics.md"))
    specs = list(TopicNames("tallyhook").specs())
    assert [name for name in rows if name.startswith("tallyhook.")] == [spec.name for spec in specs]
    for spec in specs:
        retention = "for ever" if spec.retention_ms < 0 else f"{spec.retention_ms // DAY_MS} days"
        assert rows[spec.name][-2:] == [spec.cleanup, retention]


def test_headers() -> None:
    """Every header of events and state-changes is described."""
    text = _text("topics.md")
    event = EventHeaders("i", "t", "s", "o", "c", "k", "s", 1, "m", 1, True, "r", "webhook", "key").encode()
    for name, _ in (*event, *verdict_headers("late", 1, "open", 0, 0)):
        assert f"`{name}`" in text


def test_effects() -> None:
    """The table of effects has each with exactly its members and its key."""
    rows = _rows(_text("effects.md"))
    assert list(rows) == list(EFFECT_TYPES)
    for name, made in EFFECT_TYPES.items():
        assert re.findall(r"`(\w+)`", rows[name][0]) == list(made.__struct_fields__)
        assert rows[name][1].strip("`").endswith(f":{name}")


def test_answers() -> None:
    """Every status that the door gives stands in the table, and no other."""
    table = [line for line in _text("http.md").splitlines() if re.match(r"\| \d{3}", line)]
    named = {int(code) for line in table for code in re.findall(r"\d{3}", line.split("|")[1])}
    assert named == {problem.status for problem in PROBLEMS.values()} | {200}


def test_decisions_are_listed() -> None:
    """Every record is in the list, in order, and has the three parts."""
    records = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    listed = re.findall(r"\]\((\d{4}-[a-z0-9-]+\.md)\)", _text("decisions/README.md"))
    assert listed == [record.name for record in records]
    for number, record in enumerate(records, start=1):
        text = record.read_text(encoding="utf-8")
        assert record.name.startswith(f"{number:04d}-")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequence"], record.name
