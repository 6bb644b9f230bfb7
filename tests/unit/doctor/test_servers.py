"""The settings of broker and database server, and the exit code of a report."""

from dataclasses import replace

import pytest

from tallyhook.operations.doctor import cluster, server
from tallyhook.operations.doctor.database import Server
from tallyhook.operations.doctor.findings import Finding, Report, Severity
from tallyhook.settings import Installation, Settings, load

GOOD = Server(
    version=180_004,
    encoding="UTF8",
    fsync=True,
    full_page_writes=True,
    synchronous_commit="on",
    standbys="ANY 1 (a, b)",
    recovering=False,
    read_only=False,
    role="shop",
    free_connections=50,
)


def settings_for(durability: str) -> Settings:
    """Settings of that durability."""
    return replace(load(), installation=Installation.model_validate({"durability": durability}))


@pytest.mark.parametrize(
    ("change", "single_node", "replicated"),
    [
        ({}, None, None),
        ({"version": 130_014}, ("server_version", "breaks"), ("server_version", "breaks")),
        ({"encoding": "SQL_ASCII"}, ("server_encoding", "breaks"), ("server_encoding", "breaks")),
        ({"recovering": True}, ("server_read_only", "breaks"), ("server_read_only", "breaks")),
        ({"read_only": True}, ("server_read_only", "breaks"), ("server_read_only", "breaks")),
        ({"fsync": False}, ("fsync_off", "breaks"), ("fsync_off", "breaks")),
        ({"full_page_writes": False}, ("fsync_off", "breaks"), ("fsync_off", "breaks")),
        ({"synchronous_commit": "off"}, ("synchronous_commit", "warning"), ("synchronous_commit", "breaks")),
        ({"synchronous_commit": "local"}, None, ("synchronous_commit", "breaks")),
        ({"standbys": ""}, None, ("synchronous_standby", "warning")),
        ({"free_connections": 11}, ("connections_scarce", "warning"), ("connections_scarce", "warning")),
        ({"free_connections": 12}, None, None),
    ],
)
def test_a_server(
    change: dict[str, object], single_node: tuple[str, str] | None, replicated: tuple[str, str] | None
) -> None:
    """Each danger by its id, by durability; nothing else is said."""
    changed = replace(GOOD, **change)  # type: ignore[arg-type]  # the rows above are of the fields' types
    for durability, expected in (("single-node", single_node), ("replicated", replicated)):
        found = [(finding.id, finding.severity) for finding in server.examine(settings_for(durability), changed)]
        assert found == ([expected] if expected else []), durability


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, []),
        ({"group.consumer.session.timeout.ms": "15000"}, []),
        ({"group.consumer.session.timeout.ms": "45000"}, [("session_timeout", "warning")]),
        ({"group.coordinator.rebalance.protocols": "classic,consumer,share"}, []),
        ({"group.coordinator.rebalance.protocols": "classic"}, [("group_protocol", "breaks")]),
        ({"auto.create.topics.enable": "true"}, [("broker_creates_topics", "warning")]),
        ({"auto.create.topics.enable": "false"}, []),
    ],
)
def test_a_broker(config: dict[str, str], expected: list[tuple[str, str]]) -> None:
    """What it does not tell is not judged."""
    assert [(finding.id, finding.severity) for finding in cluster.examine(config)] == expected


def finding(severity: Severity) -> Finding:
    """Any finding of that severity."""
    return Finding("clock_skew", severity, ("P1",), "a", "b", "c", "d", "e")


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (Report([], [], ["not set"]), 0),
        (Report([finding("warning")], [], []), 0),
        (Report([finding("warning"), finding("breaks")], [], []), 1),
        (Report([finding("breaks")], ["Kafka"], []), 2),
        (Report([], ["PostgreSQL"], []), 2),
    ],
)
def test_the_exit_code(report: Report, code: int) -> None:
    """Warnings are allowed; who did not answer leaves the question open."""
    assert report.exit_code == code
    assert report.as_json()["healthy"] == (code == 0)
