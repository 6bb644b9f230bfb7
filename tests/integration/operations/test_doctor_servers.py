"""The doctor at a database server of its own, at clocks that are wrong, and at an installation that works."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from pydantic import SecretStr

from tallyhook.clock import SystemClock
from tallyhook.local.ports import Ports
from tallyhook.local.postgres_server import PostgresServer
from tallyhook.operations.doctor.broker import Broker
from tallyhook.operations.doctor.findings import Finding
from tallyhook.operations.doctor.visit import examine
from tallyhook.settings import DatabaseSettings, GatewayApiSettings, Settings
from tests.integration.operations.operated import Operated, deposit_body
from tests.integration.operations.planted import Planted
from tests.integration.operations.tiny_gateway import TinyGateway
from tests.running import await_true


class ShiftedClock:
    """The machine's clock, ahead by some seconds."""

    def __init__(self, ahead_seconds: float) -> None:
        self._ahead = timedelta(seconds=ahead_seconds)

    def now(self) -> datetime:
        """The shifted moment."""
        return datetime.now(UTC) + self._ahead

    def monotonic_seconds(self) -> float:
        """As on any machine: only the wall clock is wrong."""
        return SystemClock().monotonic_seconds()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PostgresServer]:
    """A PostgreSQL of this test alone."""
    one = PostgresServer(tmp_path / "own", Ports(tmp_path / "own"), lambda _: None)
    try:
        one.start()
        yield one
    finally:
        one.stop()
        one.discard()


def found(settings: Settings, ahead_seconds: float = 0.0) -> dict[str, Finding]:
    """The findings by id and subject."""
    report = examine(settings, {}, ShiftedClock(ahead_seconds))
    return {f"{finding.id}: {finding.subject}": finding for finding in report.findings}


def test_a_server_that_may_lose_what_it_committed(quiet: Operated, server: PostgresServer) -> None:
    """Damaged pages after a power cut, commits that are not flushed, no connection left: each by the server's word."""
    settings = replace(quiet.settings, database=DatabaseSettings(url=SecretStr(server.address)))
    quiet_ones = set(found(settings))
    assert not {"fsync_off: the database server", "connections_scarce: the database server"} & quiet_ones
    with ExitStack() as opened:
        connection = opened.enter_context(psycopg.connect(server.address, autocommit=True))
        user = connection.info.user
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("ALTER DATABASE tallyhook SET synchronous_commit = off")
        connection.execute("SELECT pg_reload_conf()")
        await_true(
            lambda: connection.execute("SELECT current_setting('full_page_writes')").fetchone() == ("off",),
            20,
            "the server to reload its settings",
        )
        for _ in range(88):
            opened.enter_context(psycopg.connect(server.address))
        damaged = found(settings)
    assert set(damaged) - quiet_ones == {
        "fsync_off: the database server",
        f"synchronous_commit: database role {user}",
        "connections_scarce: the database server",
    }
    assert damaged["fsync_off: the database server"].found == "full_page_writes=off"


def test_clocks_that_differ(quiet: Operated, gateway: TinyGateway) -> None:
    """5 s are a warning; more than the door's tolerance breaks a promise; database and gateway are asked each."""
    settings = replace(quiet.settings, gateway_api=GatewayApiSettings(url=gateway.url))
    both = ("clock_skew: this machine's clock and the database's", "clock_skew: this machine's clock and the gateway's")
    assert not set(both) & set(found(settings))
    for ahead_seconds, severity in ((8.0, "warning"), (-8.0, "warning"), (310.0, "breaks"), (-310.0, "breaks")):
        skewed = found(settings, ahead_seconds)
        assert [skewed[name].severity for name in both] == [severity, severity]
        assert all(("ahead of" if ahead_seconds > 0 else "behind") in skewed[name].found for name in both)
    assert all("key" not in path for path in gateway.asked)


def test_a_gateway_that_does_not_answer(quiet: Operated) -> None:
    """It is named, and exit code 2 leaves the question open."""
    settings = replace(quiet.settings, gateway_api=GatewayApiSettings(url="http://127.0.0.1:1"))
    report = examine(settings, {}, ShiftedClock(0))
    assert [words.split(":")[0] for words in report.unreachable] == ["the gateway's API at http"]
    assert report.exit_code == 2


def test_the_brokers_settings_are_told_under_the_names_that_are_judged(quiet: Operated) -> None:
    """A newer Kafka that renames one would silence a check."""
    told = Broker(quiet.settings.kafka).settings()
    assert int(told["group.consumer.session.timeout.ms"]) > 0
    assert "consumer" in told["group.coordinator.rebalance.protocols"]
    assert told["auto.create.topics.enable"] in ("true", "false")


def test_an_installation_that_works_is_healthy(busy: Operated) -> None:
    """Stream and sink at work, events under way: positions move while they are looked at, and nothing is found."""
    planted = Planted(busy)
    busy.correlate("dep_healthy")
    for version in range(20):
        busy.deliver(deposit_body(f"evt_healthy_{version}", "dep_healthy", version, "open"))
        if version % 5 == 0:
            assert [finding for finding in planted.findings(code=0) if finding["severity"] == "breaks"] == []
    busy.await_rows([(20,)], "SELECT count(*) FROM pg_webhook_inbox WHERE object_id = 'dep_healthy'")
    assert planted.ids(code=0) <= {"relay_idle"}
