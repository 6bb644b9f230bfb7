"""The dashboard: in step with its generator, sound as Grafana's model, and of metrics that exist."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tallyhook.metric_definitions import DEFINITIONS
from tallyhook.operations.dashboard import dashboard, main, of_installation
from tests.alerts.promtool import DASHBOARD, promtool, selectors

STANDARD = {"process_start_time_seconds"}
NOT_DRAWN = {
    # What a single process owns of the lag; the dashboard shows the lag of all.
    "tallyhook_stream_lag_events",
    "tallyhook_sink_lag_events",
    "tallyhook_sink_lag_seconds",
    # The relays' own view of the backlog; the dashboard shows the database's.
    "tallyhook_relay_backlog_rows",
    # An alert of its own tells that a file of keys cannot be read.
    "tallyhook_ingress_key_reloads_total",
}


def panels() -> list[dict[str, Any]]:
    """Every panel of the file, headings too."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def queries() -> list[str]:
    """Every query of every panel, as it stands in the file."""
    return [target["expr"] for panel in panels() for target in panel.get("targets", [])]


def test_the_file_is_in_step() -> None:
    """What is shipped is what the generator writes."""
    assert DASHBOARD.read_text(encoding="utf-8") == dashboard(), "run `python -m tallyhook.operations.dashboard`"


def test_a_file_out_of_step_is_told(tmp_path: Path) -> None:
    """`--check` ends with 1 and changes nothing."""
    file = tmp_path / "dashboard.json"
    file.write_text("{}", encoding="utf-8")
    assert main(["--check", str(file)]) == 1
    assert file.read_text(encoding="utf-8") == "{}"
    assert main([str(file)]) == 0
    assert main(["--check", str(file)]) == 0


def test_ids_are_told_apart_and_no_panel_covers_another() -> None:
    """Grafana would drop one of two panels with the same id, and draw one above the other."""
    found = panels()
    ids = [panel["id"] for panel in found]
    assert len(ids) == len(set(ids))
    cells: set[tuple[int, int]] = set()
    for panel in found:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        mine = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert mine.isdisjoint(cells), panel["title"]
        cells |= mine


def test_the_data_source_is_a_variable() -> None:
    """The file names no data source of any machine, and each panel asks the chosen one."""
    model = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert [variable["name"] for variable in model["templating"]["list"]] == ["datasource", "namespace"]
    for panel in panels():
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["description"].endswith((".", "`."))
            assert panel["targets"]


def test_every_query_reads_what_exists() -> None:
    """Each metric is defined, and asked for the chosen installation alone."""
    for query in queries():
        found = list(selectors(query))
        assert found, query
        for name, selector in found:
            assert name in DEFINITIONS or name in STANDARD, query
            assert 'namespace=~"$namespace"' in selector, query


def test_every_metric_is_drawn() -> None:
    """What is measured is shown, or named here with the reason."""
    drawn = {name for query in queries() for name, _ in selectors(query)}
    assert set(DEFINITIONS) - drawn == NOT_DRAWN


def test_promtool_takes_every_query(tmp_path: Path) -> None:
    """Each is written as a recording rule, with values for Grafana's variables."""
    rules = [
        {"record": f"panel:query:{number}", "expr": query.replace("$__rate_interval", "5m").replace("$namespace", ".*")}
        for number, query in enumerate(queries())
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    promtool("check", "rules", str(file))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("max(tallyhook_ready)", 'max(tallyhook_ready{namespace=~"$namespace"})'),
        ('tallyhook_x{a="b"}[1h]', 'tallyhook_x{a="b",namespace=~"$namespace"}[1h]'),
    ],
)
def test_a_query_is_asked_for_one_installation(written: str, asked: str) -> None:
    """With and without matchers of its own."""
    assert of_installation(written) == asked
