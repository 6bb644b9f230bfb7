"""Servers in containers: the detection and the plans everywhere, the servers themselves where an engine answers."""

import inspect
import socket
import time
from pathlib import Path

import pytest
from testcontainers.core.container import DockerContainer

from tallyhook.errors import LocalStackError
from tallyhook.local.containers import container_name, kafka_plan, options_of, postgres_plan, published_ports
from tallyhook.local.engine import DETECTION_SECONDS, engine_answers, is_of_this_machine
from tallyhook.local.kafka_config import as_environment, as_properties, broker_settings
from tallyhook.local.ports import Ports
from tallyhook.local.stack import local_stack
from tallyhook.local.way import decide_way
from tallyhook.settings import DatabaseSettings, KafkaSettings, LocalSettings
from tests.integration.local.conftest import no_report
from tests.integration.local.contents import put, records, rows


def test_the_detection_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that takes the connection and never answers counts as none, after two seconds."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        assert not engine_answers()
        assert time.monotonic() - began < DETECTION_SECONDS + 2


def test_no_engine_is_told_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A socket that is not there."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert not engine_answers()


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.0.0.1", True), ("[::1]", True), ("172.17.0.1", False), ("builder.example", False)],
)
def test_an_engine_elsewhere_counts_as_none(host: str, expected: bool) -> None:
    """Its ports would not be on this machine's loopback."""
    assert is_of_this_machine(host) is expected


def test_a_state_directory_keeps_its_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine that is installed later must not hide the data; another wish is an explained error."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    assert decide_way(tmp_path, "auto") == "packages"
    assert decide_way(tmp_path, "packages") == "packages"
    with pytest.raises(LocalStackError, match="was made with packages, and TALLYHOOK_LOCAL_SERVERS wants containers"):
        decide_way(tmp_path, "containers")
    monkeypatch.delenv("DOCKER_HOST")
    assert decide_way(tmp_path, "auto") == "packages"
    assert decide_way(tmp_path / "other", "containers") == "containers"
    assert decide_way(tmp_path / "other", "auto") == "containers"


def test_a_container_listens_on_the_loopback_alone(tmp_path: Path) -> None:
    """Both plans publish their port to 127.0.0.1 under the number that clients are told, with the data in a volume."""
    ports = Ports(tmp_path)
    for plan, name in ((kafka_plan(tmp_path, ports), "kafka"), (postgres_plan(tmp_path, ports), "postgres")):
        number = ports[name]
        assert published_ports(plan) == {f"{number}/tcp": ("127.0.0.1", number)}
        assert options_of(plan)["volumes"] == [(container_name(tmp_path, name), plan.data, "rw")]
        assert options_of(plan)["name"] == container_name(tmp_path, name)


def test_the_options_are_arguments_of_testcontainers(tmp_path: Path) -> None:
    """The installed testcontainers takes every option by that name."""
    known = inspect.signature(DockerContainer.__init__).parameters
    assert set(options_of(kafka_plan(tmp_path, Ports(tmp_path)))) <= set(known)


def test_both_ways_configure_the_broker_alike(tmp_path: Path) -> None:
    """What differs is where the data lies and what it listens on inside of the container."""
    ports = Ports(tmp_path)
    environment = kafka_plan(tmp_path, ports).environment
    plain = as_environment(
        broker_settings(data=tmp_path, broker_port=ports["kafka"], controller_port=ports["kafka-controller"])
    )
    differing = {name for name, value in plain.items() if environment.get(name) != value}
    assert differing == {"KAFKA_LOG_DIRS", "KAFKA_LISTENERS"}
    assert environment["KAFKA_ADVERTISED_LISTENERS"] == f"PLAINTEXT://127.0.0.1:{ports['kafka']}"


def test_a_properties_file_survives_any_path() -> None:
    """Java reads Latin-1 with backslash escapes: other letters are written as \\u escapes, also beyond 16 bits."""
    settings = {"log.dirs": "/tmp/ไทย \\ 😀/x"}
    assert as_properties(settings) == "log.dirs=/tmp/\\u0e44\\u0e17\\u0e22 \\\\ \\ud83d\\ude00/x\n"


def test_a_comma_in_the_path_is_refused(tmp_path: Path) -> None:
    """Kafka would take it for two folders."""
    with pytest.raises(LocalStackError, match="a comma in its name"):
        broker_settings(data=tmp_path / "a,b", broker_port=1, controller_port=2)


@pytest.mark.skipif(not engine_answers(), reason="needs a Docker engine that answers")
def test_the_suite_in_containers(tmp_path: Path) -> None:
    """The same promises as without containers: data and addresses stay over a restart and over a kill."""
    kafka, database = KafkaSettings(bootstrap=None), DatabaseSettings(url=None)
    stack = local_stack(tmp_path, kafka, database, no_report, LocalSettings(servers="containers"))
    try:
        with stack:
            put(stack, "before")
            address = stack.kafka_bootstrap, stack.database_url
            for service in stack.own:
                service._container.get_wrapped_container().kill()  # type: ignore[attr-defined]
                assert not service.running()
                service.start()
            assert records(stack) == rows(stack) == ["before"]
        with stack:
            assert (stack.kafka_bootstrap, stack.database_url) == address
            put(stack, "after")
            assert records(stack) == rows(stack) == ["before", "after"]
    finally:
        stack.discard()
