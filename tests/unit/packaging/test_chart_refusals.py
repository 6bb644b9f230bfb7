"""What the chart refuses, in words that say what to do."""

import pytest

from tests.unit.packaging.helm import Helm
from tests.unit.packaging.tree import EXAMPLES

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
        ("ingress.publicKeys.existingSecret=", "no webhook can be verified"),
        ("ingress.announceSeconds=11", "only half of ingress.shutdownSeconds"),
        ("streams.persistence.enabled=true", "needs streams.store rocksdb"),
    ],
)
def test_combinations_that_would_be_wrong(helm: Helm, pair: str, message: str) -> None:
    """A combination that would start and be wrong does not render."""
    assert message in helm.refusal(SINGLE, pair)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ("kafka.tls.privateKeyKey=", "belong together"),
        ("database.existingSecret=", "without database.existingSecret"),
    ],
)
def test_half_given_secrets(helm: Helm, pair: str, message: str) -> None:
    """Half of what belongs together does not render."""
    assert message in helm.refusal(REPLICATED, pair)


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
    ],
)
def test_the_schema_refuses(helm: Helm, pair: str) -> None:
    """A misspelt name, a value out of bounds, and a setting that the chart makes itself are refused by the schema."""
    assert "schema" in helm.refusal(SINGLE, pair)
