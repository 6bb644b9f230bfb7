"""A real Prometheus scrapes a running pipeline: no query of the dashboard or of a rule finds nothing."""

from collections.abc import Iterator

import pytest

from tests.alerts.promtool import RULES, alerts, program, selectors
from tests.alerts.server import Prometheus
from tests.alerts.test_dashboard import queries
from tests.cases.shop import Shop, deposit_body
from tests.running import RunningPipeline, await_true

DEPOSITS = 5
SETTLED_SECONDS = 40.0
WINDOW = "20s"


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPipeline]:
    """One `tallyhook up` for the tests of this file."""
    program("prometheus")
    with RunningPipeline(tmp_path_factory.mktemp("watched") / "state") as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(pipeline: RunningPipeline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has scraped every process, and seen a few deposits go down the whole road."""
    with Prometheus(tmp_path_factory.mktemp("prometheus"), pipeline.ready["metrics_urls"], RULES) as running:
        await_true(lambda: running.value("sum(up)") == len(pipeline.ready["metrics_urls"]), 20, "every process scraped")
        shop = Shop(pipeline)
        names = [f"watched_{number}" for number in range(DEPOSITS)]
        shop.correlate(*names)
        assert shop.post(*(deposit_body(f"evt_{name}", name, 1, "settled") for name in names)) == [200] * DEPOSITS
        assert shop.post(b"{}") == [200]  # authentic and unusable: a dead letter
        await_true(
            lambda: running.value('sum(tallyhook_relay_sent_total{effect="release_goods"})') == DEPOSITS,
            SETTLED_SECONDS,
            "the effects to be seen",
        )
        await_true(
            lambda: running.value("max(tallyhook_sink_quarantined_open)") == 1, SETTLED_SECONDS, "the dead letter"
        )
        await_true(
            lambda: running.value("max(tallyhook_lag_unknown_seconds)") is not None, SETTLED_SECONDS, "a known lag"
        )
        shop.close()
        yield running


def test_every_query_of_the_dashboard_finds_something(prometheus: Prometheus) -> None:
    """A number, or a zero that is known; never nothing."""
    empty = [
        query
        for query in queries()
        if not prometheus.query(query.replace("$__rate_interval", WINDOW).replace("$namespace", ".*"))
    ]
    assert empty == []


def test_every_series_of_a_rule_is_there(prometheus: Prometheus) -> None:
    """A rule over series that do not exist would never fire."""
    asked = sorted({selector for alert in alerts() for _, selector in selectors(alert.expr)})
    assert [selector for selector in asked if not prometheus.query(selector)] == []


def test_every_rule_is_evaluated_and_none_of_a_healthy_pipeline_pages(prometheus: Prometheus) -> None:
    """No query is refused; the one dead letter is told as a warning, and nothing else is."""

    def active() -> set[str]:
        return {rule["name"] for rule in prometheus.rules() if rule["state"] != "inactive"}

    await_true(lambda: "TallyhookQuarantined" in active(), SETTLED_SECONDS, "the dead letter to be told")
    await_true(
        lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()), SETTLED_SECONDS, "every rule evaluated"
    )
    rules = prometheus.rules()
    assert {rule["name"] for rule in rules} == {alert.name for alert in alerts()}
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
    assert active() <= {"TallyhookDeadLetters", "TallyhookQuarantined"}


def test_the_numbers_are_those_of_the_traffic(prometheus: Prometheus) -> None:
    """What was posted is what is counted at each stage."""
    counted = {
        "sum(tallyhook_ingress_accepted_total)": DEPOSITS + 1,
        "sum(tallyhook_ingress_dead_lettered_total)": 1,
        'sum(tallyhook_stream_verdicts_total{verdict="advanced"})': DEPOSITS,
        'sum(tallyhook_sink_verdicts_total{verdict="advanced"})': DEPOSITS,
        "sum(tallyhook_sink_quarantined_total)": 1,
        'sum(tallyhook_sink_effects_total{effect="balance_entry"})': DEPOSITS,
        "sum(tallyhook_post_to_effect_seconds_count) - sum(tallyhook_relay_sent_total)": 0,
        "max(tallyhook_outbox_unsent_rows)": 0,
        "max by (topic) (tallyhook_lag_seconds) > 30": None,
        "sum(tallyhook_relay_active)": 1,
        "min(tallyhook_ready)": 1,
        "count(count by (stage) (tallyhook_build_info))": 4,
    }

    def others() -> dict[str, float | None]:
        found = {query: prometheus.value(query) for query in counted}
        return {query: value for query, value in found.items() if value != counted[query]}

    # The stores are looked at every few seconds, and Prometheus comes when it comes.
    try:
        await_true(lambda: not others(), SETTLED_SECONDS, "every number to be that of the traffic")
    finally:
        assert others() == {}
