"""Writes `docs/metrics.md` from the metrics' definitions: `python -m tallyhook.operations.metrics_page`."""

import argparse
import sys
from pathlib import Path

from tallyhook.metric_definitions import DEFINITIONS, LABEL_SETS, STAGES, Definition
from tallyhook.metrics import ALL_NAMES, COUNTERS, GAUGES

DEFAULT_PAGE = Path("docs/metrics.md")

_HEADINGS = {
    "ingress": "Ingress",
    "stream": "Stream",
    "sink": "Sink",
    "relay": "Relay",
}
_INTRODUCTION = """\
# Metrics

<!-- Written by `python -m tallyhook.operations.metrics_page`; a test holds it in step with the program. -->

Every process answers `GET /metrics` on its port: the ingress on the one that takes webhooks (8080), stream, sink and
relay on that of their health pages (9101, 9102, 9103). The text is Prometheus's format 0.0.4, or OpenMetrics where the
scraper asks for it. `tallyhook up` prints the addresses.

- Each series is there from the start, at zero: a query that finds nothing means that nobody was scraped.
- Labels have a bounded set of values; nothing that a sender writes becomes one.
- `tallyhook_lag_…` is measured from outside: each process of stream, sink and relay asks Kafka how far every stage
  came. So the lag of a stage is still shown, and grows, when all its processes are gone. Take the `max` over processes.
- What "every sink shows the same" is said of comes from the database. Take the `max` over processes.
- Beside these there are the usual `process_…` metrics: start time, CPU seconds, memory, open files.

Where authentication is on, the principals of stream, sink and relay need `Describe` on the groups
`<prefix>.<schema>.streams`, `….sink` and `….sink-dead-letters`, and `Describe`, `DescribeConfigs` and `Read` on the
topics `events`, `state-changes` and `dead-letters`. Without that they do their work all the same, the lag is not known,
and `TallyhookLagUnknown` says so.

## Dashboard and alerts

| file | what |
|---|---|
| `helm/tallyhook/files/tallyhook-dashboard.json` | Grafana's dashboard, by `tallyhook.operations.dashboard` |
| `helm/tallyhook/files/tallyhook.rules.yaml` | the alert rules; critical ones page |
| [runbooks](runbooks/README.md) | a page for each alert |
| `tests/alerts/*.test.yaml` | for each rule when it fires and when not, for `promtool test rules` |

`make alerts-verify` checks all of it, with a real Prometheus that scrapes a running pipeline. Missing data alarms too:
each stage has a rule for its absence. A Prometheus that is gone tells nobody: give it a rule that always fires, and
have the receiver alarm when that one stops.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [_INTRODUCTION]
    shared = [name for name in ALL_NAMES if len(DEFINITIONS[name].stages) > 1]
    parts.append(f"\n## Shown by several stages\n\n{_table(shared, with_stages=True)}")
    for stage in STAGES:
        own = [name for name in ALL_NAMES if DEFINITIONS[name].stages == (stage,)]
        parts.append(f"\n## {_HEADINGS[stage]}\n\n{_table(own)}")
    parts.append(f"\n## Labels\n\n{_labels()}")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    """Writes the page, or with `--check` compares it: 0 in step, 1 not."""
    parser = argparse.ArgumentParser(prog="python -m tallyhook.operations.metrics_page", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_PAGE, help=f"default {DEFAULT_PAGE}")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when it is out of step")
    chosen = parser.parse_args(arguments)
    wanted = page()
    if not chosen.check:
        chosen.file.write_text(wanted, encoding="utf-8")
        return 0
    if chosen.file.exists() and chosen.file.read_text(encoding="utf-8") == wanted:
        return 0
    sys.stderr.write(f"{chosen.file} is out of step: run `python -m tallyhook.operations.metrics_page`\n")
    return 1


def kind_of(name: str) -> str:
    """The kind of a metric, as Prometheus calls it."""
    return "counter" if name in COUNTERS else "gauge" if name in GAUGES else "histogram"


def _table(names: list[str], *, with_stages: bool = False) -> str:
    last = (" by |", "---|") if with_stages else ("", "")
    lines = [f"| metric | kind | labels | meaning |{last[0]}", f"|---|---|---|---|{last[1]}"]
    for name in names:
        definition = DEFINITIONS[name]
        stages = f" {', '.join(definition.stages)} |" if with_stages else ""
        lines.append(f"| `{name}` | {kind_of(name)} | {_labels_of(definition)} | {definition.meaning} |{stages}")
    return "\n".join(lines) + "\n"


def _labels_of(definition: Definition) -> str:
    return ", ".join(f"`{label}`" if label == key else f"`{label}` ({key})" for label, key in definition.labels.items())


def _labels() -> str:
    lines = ["| set | meaning | values |", "|---|---|---|"]
    lines += [
        f"| {name} | {known.meaning} | {', '.join(f'`{value}`' for value in known.values)} |"
        for name, known in LABEL_SETS.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
