"""What of the chart is written by a program: the list of topics, and the README's table of values.

`python -m tests.unit.packaging.written` writes both anew; tests say when they are out of step.
"""

import re
from collections.abc import Iterator

import yaml

from schemas.topics import TopicNames, TopicSpec
from tests.unit.packaging.tree import CHART

TOPICS = CHART / "files" / "topics.yaml"
README = CHART / "README.md"
BEGIN, END = "<!-- values: begin -->\n", "<!-- values: end -->\n"

_LINE = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):(?: (.*))?$")


def topics_list() -> str:
    """The topics of an installation below its prefix, as the template of Strimzi's resources reads them."""
    own, test = TopicNames("p"), TopicNames("p.test")
    (events,) = (spec for spec in test.specs() if spec.name == test.events)
    lines = ["# Written by `python -m tests.unit.packaging.written` from schemas/topics.py."]
    for spec in own.specs():
        lines += [f"- name: {spec.name.removeprefix('p.')}", f"  config: {_config(spec)}"]
    lines += ["# Where a door for live events puts test events.", f"- name: {events.name.removeprefix('p.')}"]
    return "\n".join([*lines, "  testEvents: true", f"  config: {_config(events)}"]) + "\n"


def values_table() -> str:
    """A row for each value: name, default, and what its comment in values.yaml says."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for name, default, comment in values():
        shown = f"`{default}`" if default else ""
        rows.append(f"| `{name}` | {shown} | {comment.replace('|', chr(92) + '|')} |")
    return "\n".join(rows) + "\n"


def values() -> Iterator[tuple[str, str, str]]:
    """Each value that is no group of values, with its default as YAML and its comment; in the file's order."""
    path: list[tuple[int, str]] = []
    comment: list[str] = []
    lines = (CHART / "values.yaml").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith("# -- "):
            comment = [text.removeprefix("# -- ")]
        elif text.startswith("# ") and comment:
            comment.append(text.removeprefix("# "))
        elif found := _LINE.match(line):
            depth, name, default = len(found[1]), found[2], (found[3] or "").split("  #")[0]
            path = [*((d, n) for d, n in path if d < depth), (depth, name)]
            following = next((later for later in lines[number + 1 :] if later.strip()[:1] not in ("", "#")), "")
            if default or len(following) - len(following.lstrip()) <= depth:
                yield ".".join(n for _, n in path), default, " ".join(comment)
            comment = []
        else:
            comment = []


def with_table(readme: str) -> str:
    """The README with its table as it must be; raises ValueError where the marks are gone."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + values_table() + END + after


def _config(spec: TopicSpec) -> str:
    return yaml.safe_dump(spec.config, default_flow_style=True, sort_keys=False, width=1000).strip()


if __name__ == "__main__":
    TOPICS.write_text(topics_list(), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")
