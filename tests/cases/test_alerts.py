"""A case from the life of webhook receivers: everybody who could tell that the sinks are late is a sink, and gone."""

import time

import pytest

from tests.alerts.promtool import TESTS, alerts, promtool
from tests.integration.relay.conftest import StartRelay
from tests.integration.relay.waiting import eventually
from tests.integration.sinks.balances import applied, lives
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.running import Running, until

DEPOSITS = 250
PATIENCE_SECONDS = 40.0


@pytest.mark.case(25)
def test_case_25_the_lag_of_sinks_that_are_gone(road: Road, stage: Running, start_relay: StartRelay) -> None:
    """500 events wait and no sink runs: the relay shows how many and for how long, and 0 once a sink came back."""
    worker = stage.worker()
    stage.publish(*lives(road, 1))
    until(lambda: applied(road) == 2, stage.workers)
    assert worker.end() == 0
    relay = start_relay()
    stage.publish(*lives(road, DEPOSITS, 1))
    began_at = time.monotonic()

    def lag(name: str) -> float:
        return relay.sample(name, topic="state-changes")

    eventually("500 events are seen to wait", lambda: lag("tallyhook_lag_events") == 2 * DEPOSITS, PATIENCE_SECONDS)
    eventually("their age is known", lambda: lag("tallyhook_lag_seconds") > 0, PATIENCE_SECONDS)
    first = lag("tallyhook_lag_seconds")
    eventually("the age rises", lambda: lag("tallyhook_lag_seconds") > first + 5, PATIENCE_SECONDS)
    assert lag("tallyhook_lag_seconds") < time.monotonic() - began_at + 5
    assert lag("tallyhook_lag_events") == 2 * DEPOSITS
    assert 0 < lag("tallyhook_lag_retention_ratio") < 0.001

    stage.worker()
    until(lambda: applied(road) == 2 * (DEPOSITS + 1), stage.workers)
    eventually("nothing waits", lambda: lag("tallyhook_lag_events") == 0, PATIENCE_SECONDS)
    eventually("nothing is late", lambda: lag("tallyhook_lag_seconds") == 0, PATIENCE_SECONDS)


@pytest.mark.case(25)
def test_case_25_the_alerts_with_and_without_data() -> None:
    """A lag pages; series that are missing for ten minutes page as well."""
    by_name = {alert.name: alert for alert in alerts()}
    for name in ("TallyhookSinkLag", "TallyhookLagAbsent", "TallyhookSinkAbsent"):
        assert by_name[name].severity == "critical"
        assert by_name[name].for_ in ("3m", "5m")
    promtool("test", "rules", *(str(file) for file in TESTS if file.name in ("lag.test.yaml", "stages.test.yaml")))
