"""Messages and documents send nobody to a command that does not exist."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_tree import command_names, group_names
from tests.unit.packaging.tree import ROOT

PACKAGES = ("bench", "examples", "ingress", "schemas", "sinks", "streams", "tallyhook")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), *ROOT.glob("helm/**/*.md")])

NAMED = re.compile(
    r"(?:`|Example: |^\s*(?:\$ )?|\b[A-Z_]+=\S+ )tallyhook ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", re.MULTILINE
)
"""At the beginning of code or of a line, or behind variables: elsewhere the word is the product's name."""


def named_commands(text: str) -> Iterator[str]:
    """The commands that a text names; with the second word where the first is a group's."""
    for first, second in NAMED.findall(text):
        yield f"{first} {second}" if first in group_names() and second else first


def texts(source: Path) -> Iterator[str]:
    """Every string of a module, put together from its lines; what is filled in becomes a dot."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "." for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_the_search_finds_what_it_is_for() -> None:
    """In messages, in examples, in blocks of shell, with and without variables before."""
    text = (
        "run `tallyhook gaps`\n\nExample: A_B=c tallyhook topics mend\n\n    tallyhook doctor --now\nof tallyhook here"
    )
    assert list(named_commands(text)) == ["gaps", "topics mend", "doctor"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_messages(source: Path) -> None:
    """Of the program, docstrings included."""
    found = {name for text in texts(source) for name in named_commands(text)}
    assert found - command_names() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents(page: Path) -> None:
    """Inline code and blocks of shell."""
    assert set(named_commands(page.read_text(encoding="utf-8"))) - command_names() == set()
