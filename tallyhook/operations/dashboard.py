"""Writes Grafana's dashboard: `python -m tallyhook.operations.dashboard`."""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tallyhook.operations.dashboard_panels import HEALTH, LATE, STUCK, Panel, Row
from tallyhook.operations.dashboard_traffic import GATEWAY, WORK

DEFAULT_FILE = Path("helm/tallyhook/files/tallyhook-dashboard.json")
ROWS: tuple[Row, ...] = (HEALTH, LATE, STUCK, GATEWAY, WORK)
INSTALLATION = 'namespace=~"$namespace"'

_SERIES = re.compile(r"\b((?:tallyhook|process)_\w+)(?:\{([^}]*)\})?")
_WIDTH, _STAT_HEIGHT, _GRAPH_HEIGHT = 24, 4, 7
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard() -> str:
    """The dashboard's JSON model (Grafana 10, schema 39)."""
    model = {
        "uid": "tallyhook",
        "title": "Tallyhook",
        "description": "Written by `python -m tallyhook.operations.dashboard`; a test holds it in step.",
        "tags": ["tallyhook"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "annotations": {"list": [_alerts()]},
        "templating": {"list": _variables()},
        "panels": list(_panels()),
    }
    return json.dumps(model, indent=2) + "\n"


def of_installation(expr: str) -> str:
    """The query for the chosen installation: each series gets the matcher of the variable `namespace`."""

    def matched(found: re.Match[str]) -> str:
        matchers = ",".join(filter(None, (found[2], INSTALLATION)))
        return f"{found[1]}{{{matchers}}}"

    return _SERIES.sub(matched, expr)


def main(arguments: list[str]) -> int:
    """Writes the file, or with `--check` compares it: 0 in step, 1 not."""
    parser = argparse.ArgumentParser(prog="python -m tallyhook.operations.dashboard", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_FILE, help=f"default {DEFAULT_FILE}")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when it is out of step")
    chosen = parser.parse_args(arguments)
    wanted = dashboard()
    if not chosen.check:
        chosen.file.write_text(wanted, encoding="utf-8")
        return 0
    if chosen.file.exists() and chosen.file.read_text(encoding="utf-8") == wanted:
        return 0
    sys.stderr.write(f"{chosen.file} is out of step: run `python -m tallyhook.operations.dashboard`\n")
    return 1


def _panels() -> Iterator[dict[str, Any]]:
    """Rows one below the other; within a row from left to right, and on in the next line where it is full."""
    number, top = 1, 0
    for row in ROWS:
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"h": 1, "w": _WIDTH, "x": 0, "y": top},
        }
        number, top, left, height = number + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _WIDTH:
                top, left, height = top + height, 0, 0
            height = max(height, _STAT_HEIGHT if panel.kind == "stat" else _GRAPH_HEIGHT)
            yield _panel(number, panel, {"h": height, "w": panel.width, "x": left, "y": top})
            number, left = number + 1, left + panel.width
        top += height


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _DATASOURCE,
            "expr": of_installation(query.expr),
            "legendFormat": query.legend,
            "editorMode": "code",
            "range": True,
            "exemplar": query.expr.startswith("histogram_quantile"),
        }
        for index, query in enumerate(panel.queries)
    ]
    steps = _steps(panel)
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    options: dict[str, Any]
    if panel.kind == "stat":
        options = {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "background",
            "graphMode": "area",
            "textMode": "auto",
        }
    else:
        options = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
        defaults["custom"] = {
            "lineWidth": 1,
            "fillOpacity": 10,
            "thresholdsStyle": {"mode": "line" if len(steps) > 1 else "off"},
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.meaning,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": targets,
    }


def _steps(panel: Panel) -> list[dict[str, Any]]:
    if panel.red_below is not None:
        return [{"color": "red", "value": None}, {"color": "green", "value": panel.red_below}]
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.warn_at is not None:
        steps.append({"color": "yellow", "value": panel.warn_at})
    if panel.page_at is not None:
        steps.append({"color": "red", "value": panel.page_at})
    return steps


def _variables() -> list[dict[str, Any]]:
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}},
        {
            "name": "namespace",
            "label": "Installation",
            "type": "query",
            "datasource": _DATASOURCE,
            "definition": "label_values(tallyhook_build_info, namespace)",
            "query": {"query": "label_values(tallyhook_build_info, namespace)", "refId": "namespace"},
            "refresh": 2,
            "sort": 1,
            "includeAll": True,
            # Matches series without the label as well, where Prometheus puts none on.
            "allValue": ".*",
            "current": {"selected": True, "text": "All", "value": "$__all"},
        },
    ]


def _alerts() -> dict[str, Any]:
    """Marks on every graph where a critical alert fired."""
    return {
        "name": "Critical alerts",
        "datasource": _DATASOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertname=~"Tallyhook.*",alertstate="firing",severity="critical"}',
        "titleFormat": "{{alertname}}",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
