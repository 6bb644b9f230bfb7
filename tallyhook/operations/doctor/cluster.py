"""The broker's own settings: what they mean for groups, and for topics that nobody made on purpose."""

from collections.abc import Iterator, Mapping

from tallyhook.operations.doctor.findings import Finding

SESSION_SECONDS_LONG = 15.0
"""The broker's default is 45 s; so long the partitions of a killed sink wait for another one."""

_SESSION = "group.consumer.session.timeout.ms"
_PROTOCOLS = "group.coordinator.rebalance.protocols"
_CREATES = "auto.create.topics.enable"


def examine(config: Mapping[str, str]) -> Iterator[Finding]:
    """Every danger in a broker's settings; what it does not tell is not judged."""
    protocols = config.get(_PROTOCOLS)
    if protocols is not None and "consumer" not in {part.strip() for part in protocols.split(",")}:
        yield Finding(
            "group_protocol",
            "breaks",
            ("P8",),
            "the Kafka cluster",
            f"{_PROTOCOLS}={protocols}",
            f"{_PROTOCOLS} with consumer in it (KIP-848, Kafka 4.0 or newer)",
            "no sink can join its group, so that nothing is applied",
            f"{_PROTOCOLS}=classic,consumer in the configuration of every broker",
        )
    milliseconds = config.get(_SESSION)
    if milliseconds is not None and int(milliseconds) > SESSION_SECONDS_LONG * 1000:
        yield Finding(
            "session_timeout",
            "warning",
            ("P8",),
            "the Kafka cluster",
            f"{_SESSION}={milliseconds}",
            f"{_SESSION} of at most {SESSION_SECONDS_LONG * 1000:.0f}",
            f"the partitions of a sink that was killed wait {int(milliseconds) / 1000:g} s for another one",
            f"{_SESSION}=10000 in the configuration of every broker, or for the sink's groups alone with"
            " kafka-configs.sh --group",
        )
    if config.get(_CREATES) == "true":
        yield Finding(
            "broker_creates_topics",
            "warning",
            ("P3",),
            "the Kafka cluster",
            f"{_CREATES}=true",
            f"{_CREATES}=false",
            "a topic that was deleted comes back by itself with the broker's partition count and retention",
            f"{_CREATES}=false in the configuration of every broker",
        )
