"""Values, their schema and their table say the same; the chart's change log knows its version."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.unit.packaging.helm import Helm
from tests.unit.packaging.tree import CHART, EXAMPLES, ROOT
from tests.unit.packaging.written import README, values, with_table

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema itself, or what it refers to."""
    if "$ref" in schema:
        found: dict[str, Any] = SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        return found
    return schema


def members(schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every value that the schema names."""
    for name, member in resolved(schema).get("properties", {}).items():
        yield f"{path}{name}"
        yield from members(member, f"{path}{name}.")


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every part that is an object with named members."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema:
            yield schema
        for member in schema.values():
            yield from objects(member)


def given(found: dict[str, Any], path: str = "") -> Iterator[str]:
    """Every value that values.yaml names, groups too."""
    for name, value in found.items():
        yield f"{path}{name}"
        if isinstance(value, dict):
            yield from given(value, f"{path}{name}.")


def test_the_readme_is_in_step() -> None:
    """Its table is the one that values.yaml gives."""
    text = README.read_text(encoding="utf-8")
    assert text == with_table(text), "run `python -m tests.unit.packaging.written`"


def test_the_table_has_every_value() -> None:
    """With the default that YAML reads there."""
    rows = {name: default for name, default, _ in values()}
    for name, default in rows.items():
        value: Any = VALUES
        for part in name.split("."):
            value = value[part]
        assert yaml.safe_load(default) == value if default else value == {}, name
    leaves = {name for name in given(VALUES) if not any(other.startswith(f"{name}.") for other in given(VALUES))}
    by_group = {name for name in leaves if any(name.startswith(f"{row}.") for row in rows)}
    assert leaves - by_group == set(rows) - {row for row in rows if any(n.startswith(f"{row}.") for n in by_group)}


def test_the_schema_is_strict() -> None:
    """No object takes a member that it does not name, so that a misspelt value is found."""
    assert SCHEMA["additionalProperties"] is False
    for part in objects(SCHEMA):
        if part.get("additionalProperties") is not False:
            # The items of lists are Kubernetes' own: the API judges what else they hold.
            assert set(part["properties"]) <= {"name", "mountPath"}, part


def test_the_schema_knows_every_value_and_no_other() -> None:
    """What the schema allows has a default and a comment; what has a default is allowed."""
    named = set(members(SCHEMA)) - {"global"}
    pods = {name for name in named if re.search(r"(^|\.)pod\.", name) and not name.startswith("pod.")}
    resources = {name for name in named if re.search(r"\.resources\.", name)}
    assert named - pods - resources == {
        name
        for name in given(VALUES)
        if ".resources." not in name and not name.startswith("monitoring.dashboard.labels.")
    }


@pytest.mark.parametrize("name", ["CHANGELOG.md"])
def test_the_change_log_knows_the_version(name: str) -> None:
    """The version of Chart.yaml, or what is not yet released, stands on top."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    headings = re.findall(r"^## (.+)$", (CHART / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert chart["version"] in (headings[0], headings[1].split(" ")[0] if len(headings) > 1 else "")


def test_the_notes_say_where_to_post_and_what_is_unsafe(helm4: Helm) -> None:
    """As they would be shown after the installation; rendered by a dry run of it, without a cluster."""
    single, replicated = EXAMPLES
    shown = {}
    for path in (single, replicated, ROOT / "examples" / "helm" / "test-mode.yaml"):
        done = helm4.run("install", "shop", str(CHART), "--dry-run=client", "--values", str(path))
        assert done.returncode == 0, done.stderr
        shown[path.stem] = done.stdout.split("NOTES:\n")[1]
    assert "http://shop-tallyhook-ingress.default:80/webhooks" in shown["single-node"]
    assert "loses money" in shown["single-node"]
    assert "https://pay.example.com/webhooks" in shown["replicated"]
    assert "loses money" not in shown["replicated"]
    assert "by the door of the installation whose prefix is tallyhook" in shown["test-mode"]
    assert "helm -n default test shop --logs" in shown["test-mode"]
