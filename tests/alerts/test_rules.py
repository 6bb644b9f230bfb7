"""The alert rules: sound, tested, written about, and of metrics that exist."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from ingress.refusals import REFUSAL_REASONS
from tallyhook.metric_definitions import DEFINITIONS, LABEL_SETS, STAGES
from tests.alerts.promtool import RULES, RUNBOOKS, TESTS, Alert, alerts, promtool, selectors

STANDARD = {"up", "process_start_time_seconds"}
"""Of Prometheus itself, and of every client library."""

HEADINGS = ("## Meaning", "## First look", "## Repair")


@cache
def _cases() -> tuple[dict[str, Any], ...]:
    return tuple(case for file in TESTS for case in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"])


def _shown(name: str, label: str) -> tuple[str, ...]:
    """The values that a label is shown with; empty where the installation decides."""
    key = DEFINITIONS[name].labels[label]
    return REFUSAL_REASONS if key == "refusal" else LABEL_SETS[key].values


def test_promtool_takes_the_rules() -> None:
    """Syntax of the file and of every query."""
    promtool("check", "rules", str(RULES))


@pytest.mark.parametrize("file", TESTS, ids=lambda file: file.name)
def test_the_rules_fire_and_keep_quiet(file: Path) -> None:
    """Prometheus's own evaluation, over series that were made for each rule."""
    promtool("test", "rules", str(file))


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_each_rule_is_tested_both_ways(alert: Alert) -> None:
    """Among the tests of promtool there is one in which it fires, and one in which it never does."""
    mine = [case for case in _cases() for one in case["alert_rule_test"] if one["alertname"] == alert.name]
    fires = [case for case in mine if any(one["exp_alerts"] for one in case["alert_rule_test"])]
    quiet = [case for case in mine if not any(one["exp_alerts"] for one in case["alert_rule_test"])]
    assert fires
    assert quiet
    if alert.for_ != "0m" and not alert.expr.startswith("histogram_quantile"):
        checked = [len(case["alert_rule_test"]) for case in fires]
        assert max(checked) > 1, "no test looks before the time of `for` is over"


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_each_rule_reads_what_exists(alert: Alert) -> None:
    """Names are defined metrics; labels are theirs, and a label's fixed values are among those that are shown."""
    for name, selector in selectors(alert.expr):
        if name in STANDARD:
            continue
        assert name in DEFINITIONS, selector
        for label, value in re.findall(r'(\w+)=~?"([^"]*)"', selector):
            assert label in DEFINITIONS[name].labels, selector
            values = _shown(name, label)
            assert not values or set(value.split("|")) <= set(values), selector


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert.name)
def test_each_rule_has_its_page(alert: Alert) -> None:
    """Severity, sentences, and a runbook of its own that begins with its name and says what to look at and to do."""
    assert alert.severity in ("critical", "warning")
    assert alert.annotations["summary"]
    assert alert.annotations["description"].endswith(".")
    assert alert.annotations["runbook_url"] == f"docs/runbooks/{alert.page}"
    page = (RUNBOOKS / alert.page).read_text(encoding="utf-8")
    assert page.startswith(f"# {alert.name}\n")
    assert [heading for heading in HEADINGS if heading not in page] == []
    assert f"**{alert.severity}**" in page


def test_each_page_has_its_rule() -> None:
    """A page is an alert's or stands among the further ones of the list; the list names every alert."""
    listed = (RUNBOOKS / "README.md").read_text(encoding="utf-8")
    known = {alert.page for alert in alerts()}
    for page in RUNBOOKS.glob("*.md"):
        if page.name not in known and page.name != "README.md":
            assert f"]({page.name}): " in listed, page.name
    for alert in alerts():
        assert f"| [{alert.name}]({alert.page}) | {alert.severity} |" in listed


def test_the_absence_of_each_stage_pages() -> None:
    """A stage that nobody sees is as bad as one that says it is ill."""
    expressions = {alert.expr for alert in alerts() if alert.severity == "critical"}
    for stage in STAGES:
        assert f'absent(tallyhook_build_info{{stage="{stage}"}})' in expressions


def test_names_are_told_apart() -> None:
    """No two rules share a name."""
    names = [alert.name for alert in alerts()]
    assert len(names) == len(set(names))
