"""Metrics: every name is defined, every label is bounded, every series is there from the start."""

import re
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from ingress.refusals import REFUSAL_REASONS
from tallyhook.metric_definitions import DEFINITIONS, LABEL_SETS, STAGES, Stage
from tallyhook.metrics import ALL_NAMES, COUNTERS, HISTOGRAMS, Metrics
from tallyhook.operations.metrics_page import main, page
from tests.unit.packaging.tree import ROOT

PARTITIONS = ("0", "1", "2")


def prepared(stage: Stage) -> Metrics:
    """As a process of the stage starts."""
    metrics = Metrics()
    metrics.prepare(
        stage,
        # An iterator, as callers give it: it must serve more than one metric.
        partition=iter(PARTITIONS),
        reason=REFUSAL_REASONS,
        endpoint=["shop"],
        shard=["0"],
    )
    return metrics


def series(metrics: Metrics) -> dict[str, list[dict[str, str]]]:
    """The labels of each series by the name it is scraped with."""
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(metrics.exposition()[0].decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_every_name_is_defined() -> None:
    """The Literals and the definitions name the same metrics, and no label lacks its set."""
    assert sorted(ALL_NAMES) == sorted(DEFINITIONS)
    for name, definition in DEFINITIONS.items():
        assert definition.meaning.endswith("."), name
        assert set(definition.labels.values()) <= set(LABEL_SETS), name
        assert definition.stages, name


def test_names_follow_the_conventions() -> None:
    """Counters end with _total; what is measured in seconds or is a share says so."""
    for name in ALL_NAMES:
        assert re.fullmatch(r"tallyhook(_[a-z]+)+", name)
        assert name.endswith("_total") == (name in COUNTERS), name


@pytest.mark.parametrize("stage", STAGES)
def test_every_series_is_there_from_the_start(stage: Stage) -> None:
    """Of each metric every combination of labels, at zero: no query of a fresh process finds nothing."""
    found = series(prepared(stage))
    for name, definition in DEFINITIONS.items():
        if stage not in definition.stages:
            assert name not in found
            continue
        wanted = 1
        for label, key in definition.labels.items():
            given = {"partition": PARTITIONS, "reason": REFUSAL_REASONS}.get(label, ("one",))
            wanted *= 1 if name == "tallyhook_build_info" else len(LABEL_SETS[key].values or given)
        shown = f"{name}_count" if name in HISTOGRAMS else name
        assert len(found[shown]) == wanted, name
    assert found["tallyhook_build_info"][0]["stage"] == stage
    assert "process_start_time_seconds" in found
    assert not [name for name in found if name.endswith("_created")]


def test_a_label_that_is_not_defined_is_refused() -> None:
    """A slip would make a series that no dashboard finds."""
    with pytest.raises(ValueError, match="label"):
        Metrics().counter("tallyhook_ingress_refused_total", cause="signature")


def test_openmetrics_is_given_to_who_asks_for_it() -> None:
    """As Prometheus does; everybody else gets format 0.0.4. Both say the same."""
    metrics = prepared("ingress")
    metrics.counter("tallyhook_ingress_accepted_total").inc(3)
    plain, plain_type = metrics.exposition("text/html, */*")
    modern, modern_type = metrics.exposition("application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1")
    assert plain_type.startswith("text/plain; version=0.0.4")
    assert modern_type.startswith("application/openmetrics-text")
    assert modern.endswith(b"# EOF\n")
    old = text_string_to_metric_families(plain.decode())
    new = openmetrics_families(modern.decode())  # type: ignore[no-untyped-call]  # the library has no type here
    values = [
        sample.value
        for families in (old, new)
        for family in families
        for sample in family.samples
        if sample.name == "tallyhook_ingress_accepted_total"
    ]
    assert values == [3.0, 3.0]


def test_the_page_is_in_step(tmp_path: Path) -> None:
    """`docs/metrics.md` is what the definitions say; `--check` tells a page that is not."""
    written = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert written == page(), "run `python -m tallyhook.operations.metrics_page`"
    stale = tmp_path / "metrics.md"
    stale.write_text("old", encoding="utf-8")
    assert main(["--check", str(stale)]) == 1
    assert main([str(stale)]) == 0
    assert main(["--check", str(stale)]) == 0
