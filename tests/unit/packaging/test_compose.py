"""The compose file starts every process with settings that the program knows, in an order that works."""

import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from typer.main import get_command

from tallyhook.operations import healthcheck
from tests.unit.packaging.programs import program
from tests.unit.packaging.tree import CHART, ROOT, settings_from

FILE = ROOT / "docker-compose.yml"
JOBS = ("migrate", "topics")
PROCESSES = ("ingress", "stream", "sink", "relay")
WATCHERS = ("prometheus", "grafana")
SIMULATOR = "gateway"
OURS = (*JOBS, *PROCESSES, SIMULATOR)


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    """The services, anchors and merges resolved."""
    loaded = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    found: dict[str, Any] = loaded["services"]
    return found


def test_all_parts_are_there(services: dict[str, Any]) -> None:
    """Broker, database, the two jobs, the four processes and who watches them; the simulator only when asked for."""
    assert {"kafka", "postgres", *WATCHERS, *OURS} == set(services)
    assert {name: service["profiles"] for name, service in services.items() if "profiles" in service} == {
        SIMULATOR: ["gateway"]
    }


@pytest.mark.parametrize("name", OURS)
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


def test_health_is_readiness(services: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The image's module asks /readyz; it knows the process by its command, and the port by its settings."""
    for name in PROCESSES:
        assert services[name]["healthcheck"]["test"] == ["CMD", "python", "-m", healthcheck.__name__, "readyz"]
        assert healthcheck.stage_of(["/sbin/docker-init", "--", "tallyhook", *services[name]["command"]]) == name
        settings = settings_from(services[name]["environment"], tmp_path, monkeypatch)
        variable, default = healthcheck.STAGES[name]
        listens = {
            "ingress": settings.ingress.port,
            "stream": settings.stream.health_port,
            "sink": settings.sink.health_port,
            "relay": settings.relay.health_port,
        }[name]
        assert int(services[name]["environment"].get(variable, default)) == listens


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
        "prometheus": {},
        "grafana": {"prometheus": healthy},
        "gateway": {"ingress": healthy},
    }
    for name in ("kafka", "postgres", "ingress", "prometheus"):
        assert "healthcheck" in services[name]


def test_everything_is_bounded(services: dict[str, Any]) -> None:
    """Memory and logs of every container have a limit; processes start again without one."""
    assert [name for name, service in services.items() if "mem_limit" not in service] == []
    assert [name for name, service in services.items() if "max-size" not in service["logging"]["options"]] == []
    assert {services[name]["restart"] for name in PROCESSES} == {"unless-stopped"}


@pytest.mark.parametrize("name", OURS)
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
    """Only the webhooks' port can leave this host, and by default it does not; Prometheus has no login."""
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert published == {
        "ingress": ["${PUBLISH_ADDRESS:-127.0.0.1}:8080:8080"],
        "prometheus": ["127.0.0.1:9090:9090"],
        "grafana": ["127.0.0.1:3000:3000"],
    }


def test_own_variables_cannot_be_taken_for_settings() -> None:
    """What compose fills in is not named like a setting: `tallyhook settings` would call it a typing error."""
    names = set(re.findall(r"\$\{([A-Z_]+)", FILE.read_text(encoding="utf-8")))
    assert names
    assert [name for name in names if name.startswith("TALLYHOOK_")] == []


def test_containers_call_commands_that_exist(services: dict[str, Any]) -> None:
    """Each command is one of the program's."""
    from tallyhook.cli.main import app

    for name in OURS:
        command, words = get_command(app), list(services[name]["command"])
        while words and words[0] in getattr(command, "commands", ()):
            command = getattr(command, "commands")[words.pop(0)]  # noqa: B009  a group's type is not public
        assert command.name != "tallyhook"
        command.make_context(command.name, words)


def _mounted(service: dict[str, Any]) -> dict[str, Path]:
    """Files of this repository by their path in the container."""
    pairs = (volume.split(":")[:2] for volume in service["volumes"])
    return {target: ROOT / source for source, target in pairs if source.startswith("./")}


def test_prometheus_scrapes_every_process(services: dict[str, Any]) -> None:
    """At the port of its health pages, and with the alerts of the chart."""
    mounted = _mounted(services["prometheus"])
    config = yaml.safe_load(mounted["/etc/prometheus/prometheus.yml"].read_text(encoding="utf-8"))
    (scrape,) = config["scrape_configs"]
    (group,) = scrape["static_configs"]
    assert set(group["targets"]) == {f"{name}:{healthcheck.STAGES[name][1]}" for name in PROCESSES}
    assert "namespace" in group["labels"], "dashboard and alerts tell installations apart by it"
    (rules,) = config["rule_files"]
    assert mounted[rules] == CHART / "files" / "tallyhook.rules.yaml"
    assert mounted[rules].exists()


def test_grafana_shows_the_dashboard(services: dict[str, Any]) -> None:
    """The chart's, from the folder that its provider reads, with Prometheus as the default source."""
    grafana = services["grafana"]
    mounted = _mounted(grafana)
    provisioning = "/etc/grafana/provisioning"
    provider = yaml.safe_load(mounted[f"{provisioning}/dashboards/tallyhook.yaml"].read_text(encoding="utf-8"))
    source = yaml.safe_load(mounted[f"{provisioning}/datasources/tallyhook.yaml"].read_text(encoding="utf-8"))
    shown = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert mounted[shown] == CHART / "files" / "tallyhook-dashboard.json"
    assert provider["providers"][0]["options"]["path"] == str(Path(shown).parent)
    assert (source["datasources"][0]["url"], source["datasources"][0]["isDefault"]) == ("http://prometheus:9090", True)
    assert [name for name in grafana["environment"] if "PASSWORD" in name] == ["GF_SECURITY_ADMIN_PASSWORD__FILE"]


def test_prometheus_accepts_its_configuration() -> None:
    """promtool finds nothing wrong with it."""
    path = program("promtool")
    if path is None:
        pytest.skip("promtool is not installed: install the package `prometheus`, or name it in TALLYHOOK_PROMTOOL")
    file = ROOT / "deploy" / "compose" / "prometheus.yml"
    done = subprocess.run(
        [path, "check", "config", "--syntax-only", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_accepts_the_file() -> None:
    """Compose itself finds nothing wrong with it (no engine is needed for that)."""
    path = program("docker-compose")
    if path is None:
        pytest.skip("docker-compose is not installed: put version 2 or newer on PATH or in TALLYHOOK_DOCKER_COMPOSE")
    done = subprocess.run(
        [path, "-f", str(FILE), "--profile", "gateway", "config", "-q"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
