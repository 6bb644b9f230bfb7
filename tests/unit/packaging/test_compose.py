"""The compose file starts every process with settings that the program knows, in an order that works."""

import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.main import get_command

from tests.unit.packaging.programs import program
from tests.unit.packaging.tree import ROOT, settings_from

FILE = ROOT / "docker-compose.yml"
JOBS = ("migrate", "topics")
PROCESSES = ("ingress", "stream", "sink", "relay")


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services, anchors and merges resolved."""
    loaded = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    found: dict[str, Any] = loaded["services"]
    return found


def test_all_parts_are_there(services: dict[str, Any]) -> None:
    """Broker, database, the two jobs and the four processes."""
    assert {"kafka", "postgres", *JOBS, *PROCESSES} == set(services)


@pytest.mark.parametrize("name", [*JOBS, *PROCESSES])
def test_environments_load(
    services: dict[str, Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process gets known variables alone, and the addresses of the services of this file."""
    settings = settings_from(services[name]["environment"], tmp_path, monkeypatch)
    assert settings.kafka.bootstrap == "kafka:9092"
    assert settings.installation.durability == "single-node"
    if name in ("ingress", "stream"):
        assert settings.database.url is None
        return
    assert settings.database.url is not None
    url = urlsplit(settings.database.url.get_secret_value())
    assert (url.hostname, url.port, url.password) == ("postgres", 5432, None)
    assert settings.database.password is not None


@pytest.mark.parametrize("name", PROCESSES)
def test_health_is_readiness_at_the_right_port(
    services: dict[str, Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Health asks /readyz at the port that the process listens on."""
    settings = settings_from(services[name]["environment"], tmp_path, monkeypatch)
    port = {
        "ingress": settings.ingress.port,
        "stream": settings.stream.health_port,
        "sink": settings.sink.health_port,
        "relay": settings.relay.health_port,
    }[name]
    assert f"http://127.0.0.1:{port}/readyz" in services[name]["healthcheck"]["test"][-1]


def test_the_order_of_starts(services: dict[str, Any]) -> None:
    """Schema, then topics, then the processes, each after the one before has succeeded."""
    waits = {
        name: {other: how["condition"] for other, how in service.get("depends_on", {}).items()}
        for name, service in services.items()
    }
    done, healthy = "service_completed_successfully", "service_healthy"
    assert waits == {
        "kafka": {},
        "postgres": {},
        "migrate": {"postgres": healthy},
        "topics": {"kafka": healthy, "migrate": done},
        **{name: {"topics": done} for name in PROCESSES},
    }
    assert "healthcheck" in services["kafka"]
    assert "healthcheck" in services["postgres"]


def test_everything_is_bounded(services: dict[str, Any]) -> None:
    """Memory and logs of every container have a limit; processes start again without one."""
    assert [name for name, service in services.items() if "mem_limit" not in service] == []
    assert [name for name, service in services.items() if "max-size" not in service["logging"]["options"]] == []
    assert {services[name]["restart"] for name in PROCESSES} == {"unless-stopped"}


@pytest.mark.parametrize("name", [*JOBS, *PROCESSES])
def test_containers_have_the_least_rights(services: dict[str, Any], name: str) -> None:
    """No capabilities, no writable image, no new privileges."""
    assert services[name]["cap_drop"] == ["ALL"]
    assert services[name]["read_only"] is True
    assert services[name]["security_opt"] == ["no-new-privileges:true"]


def test_the_database_keeps_its_data(services: dict[str, Any]) -> None:
    """The image of PostgreSQL 18 keeps its data below /var/lib/postgresql, no longer in its folder `data`."""
    assert services["postgres"]["image"].startswith("postgres:18")
    assert services["postgres"]["volumes"] == ["postgres-data:/var/lib/postgresql"]


def test_nothing_but_the_door_is_published(services: dict[str, Any]) -> None:
    """Only the webhooks' port leaves the compose network, and by default only to this host."""
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {"ingress": ["${PUBLISH_ADDRESS:-127.0.0.1}:8080:8080"]}


def test_own_variables_cannot_be_taken_for_settings() -> None:
    """What compose fills in is not named like a setting: `tallyhook settings` would call it a typing error."""
    names = set(re.findall(r"\$\{([A-Z_]+)", FILE.read_text(encoding="utf-8")))
    assert names
    assert [name for name in names if name.startswith("TALLYHOOK_")] == []


def test_containers_call_commands_that_exist(services: dict[str, Any]) -> None:
    """Each command is one of the program's."""
    from tallyhook.cli.main import app

    for name in (*JOBS, *PROCESSES):
        command = get_command(app)
        for word in services[name]["command"]:
            command = getattr(command, "commands")[word]  # noqa: B009  a group's type is not public


def test_compose_accepts_the_file() -> None:
    """Compose itself finds nothing wrong with it (no engine is needed for that)."""
    path = program("docker-compose")
    if path is None:
        pytest.skip("docker-compose is not installed: put version 2 or newer on PATH or in TALLYHOOK_DOCKER_COMPOSE")
    done = subprocess.run([path, "-f", str(FILE), "config", "-q"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
