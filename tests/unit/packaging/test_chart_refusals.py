"""What the chart refuses, in words that say what to do."""

import pytest

from tests.unit.packaging.helm import Helm
from tests.unit.packaging.tree import EXAMPLES, VALUE_SETS

SINGLE, REPLICATED = EXAMPLES


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("sink.replicas=9", "sink.replicas is 9, but installation.partitions is 8"),
        ("streams.replicas=9", "streams.replicas is 9, but installation.partitions is 8"),
        ("relay.shards=9", "relay.shards is 9, but installation.partitions is 8"),
        ("kafka.bootstrap=", "kafka.bootstrap is empty"),
        ("kafka.securityProtocol=SASL_SSL", "kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.existingSecret"),
        ("kafka.sasl.mechanism=PLAIN", "the password would not be used"),
        ("kafka.tls.existingSecret=certificates", "the connection would not be encrypted"),
        ("database.url=", "give either url, or existingSecret with urlKey"),
        ("database.urlKey=url", "give either url, or existingSecret with urlKey"),
        ("database.url=postgresql://shop:hunter2@db/shop", "put it into database.existingSecret"),
        ("database.tls.mode=verify-full", "no certificate authority to verify with"),
        ("ingress.publicKeys.existingSecret=", "no webhook can be verified"),
        ("ingress.announceSeconds=13", "only half of ingress.shutdownSeconds"),
        ("ingress.kubernetesIngress.enabled=true", "under which name do webhooks come?"),
        ("ingress.httpRoute.enabled=true", "which gateway is to lead here?"),
        ("streams.persistence.enabled=true", "needs streams.store rocksdb"),
        ("installation.topicPrefix=shop.test", "every event would be set aside"),
        ("strimzi.enabled=true", "strimzi.enabled needs strimzi.cluster"),
        ("helmTest.enabled=true", "helmTest.signingKey.existingSecret is empty"),
    ],
)
def test_combinations_that_would_be_wrong(helm: Helm, pair: str, message: str) -> None:
    """A combination that would start and be wrong does not render; the message says what is wrong, without a secret."""
    said = helm.refusal(SINGLE, pair)
    assert message in said
    assert "hunter2" not in said


@pytest.mark.parametrize("component", ["sink", "streams"])
@pytest.mark.parametrize(
    ("keda", "message"),
    [
        ({"maxReplicas": 33}, "{0}.keda.maxReplicas is 33, but installation.partitions is 32"),
        ({"minReplicas": 5, "maxReplicas": 4}, "{0}.keda.minReplicas is 5, but {0}.keda.maxReplicas is 4"),
    ],
)
def test_scalers_keep_within_the_partitions(helm: Helm, component: str, keda: dict[str, int], message: str) -> None:
    """A scaler that would make idle pods, or that has no room, does not render."""
    pairs = [f"{component}.keda.{name}={value}" for name, value in keda.items()]
    assert message.format(component) in helm.refusal(VALUE_SETS["KEDA"], *pairs)


def test_a_door_that_would_scale_backwards(helm: Helm) -> None:
    """The least is at most the most."""
    assert "minReplicas is 13" in helm.refusal(VALUE_SETS["KEDA"], "ingress.autoscaling.minReplicas=13")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (["kafka.tls.privateKeyKey="], "belong together"),
        (["database.existingSecret="], "without database.existingSecret"),
        (["database.tls.certificateKey=tls.crt"], "belong together"),
        (["ingress.enabled=false"], "it would lead nowhere"),
    ],
)
def test_half_of_what_belongs_together(helm: Helm, pairs: list[str], message: str) -> None:
    """Half of it does not render."""
    assert message in helm.refusal(REPLICATED, *pairs)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("helmTest.schema=", "the schema of the installation for test events"),
        ("ingress.enabled=false", "it would lead nowhere"),
    ],
)
def test_a_test_that_could_never_pass(helm: Helm, pair: str, message: str) -> None:
    """A probe whose verdict would come elsewhere, or that has no door."""
    assert message in helm.refusal(VALUE_SETS["everything"], pair)
    assert "at which door is the test to post?" in helm.refusal(VALUE_SETS["test mode"], "helmTest.url=")


@pytest.mark.parametrize(
    "name", ["TALLYHOOK_PARTITIONS", "TALLYHOOK_DATABASE_URL", "TALLYHOOK_RELAY_SHARD", "TALLYHOOK_KAFKA_BOOTSTRAP"]
)
@pytest.mark.parametrize("path", ["pod.extraEnv", "sink.pod.extraEnv"])
def test_one_pod_is_given_no_other_setting(helm: Helm, name: str, path: str) -> None:
    """What the chart makes of a value would be overwritten for one process alone."""
    said = helm.refusal(SINGLE, f'{path}=[{{"name": "{name}", "value": "1"}}]')
    assert f"{name} is made by the chart from another value" in said


@pytest.mark.parametrize("component", ["sink", "streams"])
def test_as_many_replicas_as_partitions_are_fine(helm: Helm, component: str) -> None:
    """The limit itself renders."""
    assert helm.render(SINGLE, f"{component}.replicas=8")


@pytest.mark.parametrize(
    "pair",
    [
        "sinks.replicas=2",
        "sink.replica=2",
        "sink.replicas=0",
        "sink.replicas=two",
        "installation.partitions=1001",
        "installation.durability=some",
        "installation.schema=Bad-Name",
        "kafka.bootstrap=broker",
        "settings.TALLYHOOK_SINK_BATCH_ROW=5",
        "settings.TALLYHOOK_PARTITIONS=5",
        "settings.TALLYHOOK_DATABASE_PASSWORD=secret",
        "image.digest=sha256:abc",
        "kafka.sasl.existingSecret=Not A Name",
        "ingress.resource={}",
        "ingress.autoscaling.maxReplicas=0",
        "ingress.podDisruptionBudget.maxUnavailable=0",
        "streams.keda.lagThreshold=many",
        "streams.terminationGraceSeconds=soon",
        "networkPolicy.kafkaPorts=[70000]",
        'sink.pod.extraEnv=[{"value": "1"}]',
        "sink.pod.extraEnvs=[]",
        'commonLabels={"app.kubernetes.io/name": "other"}',
        'commonLabels={"number": 1}',
        "helmTest.url=shop",
        "database.tls.mode=sure",
    ],
)
def test_the_schema_refuses(helm: Helm, pair: str) -> None:
    """A misspelt name, a value out of bounds, and a setting that the chart makes itself are refused by the schema."""
    assert "schema" in helm.refusal(SINGLE, pair)
