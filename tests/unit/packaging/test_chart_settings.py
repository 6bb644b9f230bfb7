"""The chart gives every process exactly the settings that the program knows."""

import json
from pathlib import Path

import pytest

from tallyhook.settings import describe
from tests.unit.packaging.helm import Helm, variables_in_templates, workloads
from tests.unit.packaging.tree import CHART, EXAMPLES, settings_from

SINGLE, REPLICATED = EXAMPLES


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_every_pods_environment_loads(
    helm: Helm, values: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pod's environment holds known variables alone, with values the program accepts."""
    found = workloads(helm.render(values))
    assert {"ingress", "streams", "sink", "relay", "migrate", "topics"} == {work.component for work in found}
    for work in found:
        settings = settings_from(work.environment, tmp_path, monkeypatch)
        assert settings.kafka.bootstrap is not None
        assert (settings.database.url is not None) == (work.component in ("sink", "relay", "migrate", "topics"))
        assert settings.process.health_host == settings.ingress.host == "0.0.0.0"


def test_values_reach_the_program(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of the replicated example come out of the settings as they were meant."""
    relay = [work for work in workloads(helm.render(REPLICATED)) if work.component == "relay"]
    loaded = [settings_from(work.environment, tmp_path, monkeypatch) for work in relay]
    assert [settings.relay.shard for settings in loaded] == [0, 1]
    settings = loaded[0]
    assert settings.installation.partitions == 24
    assert settings.installation.livemode is True
    assert settings.kafka.security_protocol == "SASL_SSL"
    assert settings.kafka.sasl_password is not None
    assert settings.kafka.sasl_password.get_secret_value() == "in-a-file"
    assert settings.kafka.ssl_key_password is not None
    assert settings.database.url is not None
    assert settings.database.url.get_secret_value() == "host=in-a-file"
    assert settings.database.password is None
    assert settings.stream.replication == 3
    assert settings.stream.store == "rocksdb"
    assert settings.relay.shards == 2
    assert settings.ingress.max_body_bytes == 1_048_576
    assert settings.sink.batch_wait_seconds == 0.1


def test_an_installation_for_test_events(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`false` arrives as false, and a single copy makes a changelog with a single copy."""
    (sink,) = (w for w in workloads(helm.render(SINGLE, "installation.livemode=false")) if w.component == "sink")
    settings = settings_from(sink.environment, tmp_path, monkeypatch)
    assert settings.installation.livemode is False
    assert settings.stream.replication == 1
    assert settings.database.password is not None


def test_endpoints_from_a_secret(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the setting names lies in a mount of the door alone; no other public keys need to be given."""
    pairs = ("ingress.endpoints.existingSecret=endpoints", "ingress.publicKeys.existingSecret=")
    for work in workloads(helm.render(SINGLE, *pairs)):
        assert ("endpoints" in work.secrets) == (work.component == "ingress")
        assert "gateway-public-keys" not in work.secrets
        if work.component == "ingress":
            settings = settings_from(work.environment, tmp_path, monkeypatch).ingress
            assert (settings.public_keys_file, settings.endpoints_file) == (
                None,
                Path("/etc/tallyhook/endpoints/endpoints.toml"),
            )
            assert "/etc/tallyhook/endpoints" in {mount["mountPath"] for mount in work.container["volumeMounts"]}


@pytest.mark.parametrize("amount", [1024, 262_144, 1_000_000, 8_388_608])
def test_whole_numbers_stay_whole(helm: Helm, amount: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large whole number is not written in the exponent form that helm's floats have."""
    found = workloads(helm.render(SINGLE, f"settings.TALLYHOOK_INGRESS_MAX_BODY_BYTES={amount}"))
    assert {work.environment["TALLYHOOK_INGRESS_MAX_BODY_BYTES"] for work in found} == {str(amount)}
    assert settings_from(found[0].environment, tmp_path, monkeypatch).ingress.max_body_bytes == amount


def test_every_setting_can_be_given() -> None:
    """A setting is either made by a template or allowed under `settings`: none is out of reach, none in both."""
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    free = set(schema["properties"]["settings"]["propertyNames"]["enum"])
    secrets = {row.variable for row in describe() if row.secret}
    local = {row.variable for row in describe() if row.component in ("local", "gateway_sim")}
    # Without those of the local stack and of the simulated gateway, which have no meaning in a cluster, the inline form
    # of the public keys, and the key of the gateway's API: no process needs it, only commands, from who runs them.
    by_hand = {"TALLYHOOK_INGRESS_PUBLIC_KEYS", "TALLYHOOK_GATEWAY_API_KEY"}
    wanted = {row.variable for row in describe()} - local - by_hand
    made = {
        name.removesuffix("_FILE") if name.removesuffix("_FILE") in secrets else name
        for name in variables_in_templates()
    }
    assert wanted - made - free == set(), "add these to properties.settings.propertyNames of values.schema.json"
    assert free - wanted == set(), "the program no longer knows these: take them out of values.schema.json"
    assert free & made == set(), "the chart makes these itself: take them out of values.schema.json"
    assert made - wanted == set()


def test_ports_are_those_the_processes_listen_on(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The port that probes and services name is the one in the environment."""
    for work in workloads(helm.render(SINGLE)):
        settings = settings_from(work.environment, tmp_path, monkeypatch)
        listens = {
            "ingress": settings.ingress.port,
            "streams": settings.stream.health_port,
            "sink": settings.sink.health_port,
            "relay": settings.relay.health_port,
        }
        if work.component in listens:
            assert [port["containerPort"] for port in work.container["ports"]] == [listens[work.component]]
