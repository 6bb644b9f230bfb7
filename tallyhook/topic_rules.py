"""Rules that a topic's configuration must keep whoever set it: the same for `doctor` and for each stage's start."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from schemas.topics import TopicSpec
from tallyhook import kafka, logs
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.settings import KafkaSettings

Rule = Literal["compacted", "not_compacted", "retention_short"]

HOUR_MS = 3_600_000
_SILENT = (
    KafkaError._TIMED_OUT,  # noqa: SLF001  librdkafka's own codes have no public name
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
    KafkaError.REQUEST_TIMED_OUT,
)

_log = logs.logger(__name__)


@dataclass(frozen=True, slots=True)
class Fault:
    """A configuration with which a topic loses what it must keep.

    Args:
        found: what the topic has, such as `retention.ms=3600000 (1 h)`.
        wanted: what it must have, in the same words.
        endangers: what will happen.
    """

    rule: Rule
    topic: str
    found: str
    wanted: str
    endangers: str


def faults(spec: TopicSpec, config: Mapping[str, str]) -> Iterator[Fault]:
    """What of a topic's configuration loses records; settings that the cluster did not tell are not judged."""
    policy = config.get("cleanup.policy")
    if policy is not None:
        yield from _cleanup_faults(spec, policy)
    retention = config.get("retention.ms")
    if retention is not None and 0 <= int(retention) < spec.least_retention_ms:
        yield Fault(
            "retention_short",
            spec.name,
            f"retention.ms={retention} ({int(retention) / HOUR_MS:.4g} h)",
            f"retention.ms={spec.retention_ms}, and never below {spec.least_retention_ms}"
            f" ({spec.least_retention_ms / HOUR_MS:g} h)",
            "events that were answered 200 are deleted before a stage that stood still has read them",
        )


def _cleanup_faults(spec: TopicSpec, policy: str) -> Iterator[Fault]:
    policies = {part.strip() for part in policy.split(",")}
    found, wanted = f"cleanup.policy={policy}", f"cleanup.policy={spec.cleanup}"
    if spec.cleanup == "delete" and "compact" in policies:
        endangers = "of several events of one object only the last is kept, so that the others are lost"
        yield Fault("compacted", spec.name, found, wanted, endangers)
    elif spec.cleanup == "compact" and policies != {"compact"}:
        endangers = "records go by their age, though the newest of each key must stay for ever"
        yield Fault("not_compacted", spec.name, found, wanted, endangers)


def configs(client: AdminClient, topics: Sequence[str], timeout_seconds: float) -> dict[str, dict[str, str]]:
    """The configurations of topics; one that is missing or may not be told to this client is left out.

    The caller keeps the client: its answers fail once it is gone. Raises KafkaUnavailable when no answer comes.
    """
    if not topics:
        return {}
    found: dict[str, dict[str, str]] = {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    for resource, answer in client.describe_configs(resources, request_timeout=timeout_seconds).items():
        try:
            entries = answer.result(timeout_seconds + 1)
        except TimeoutError as failure:
            raise KafkaUnavailable(f"the configuration of {resource.name}: no answer") from failure
        except KafkaException as failure:
            error = failure.args[0]
            if error.code() in _SILENT:
                raise KafkaUnavailable(f"the configuration of {resource.name}: {kafka.words(error)}") from failure
            continue
        found[resource.name] = {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}
    return found


def refuse_faults(specs: Sequence[TopicSpec], found: Mapping[str, Mapping[str, str]]) -> None:
    """Raises TopicMismatch for the first topic that loses records; one whose configuration is not told is warned of."""
    untold = [spec.name for spec in specs if "cleanup.policy" not in found.get(spec.name, {})]
    if untold:
        _log.warning("topics do not tell their configuration (is DescribeConfigs allowed?): not checked", topics=untold)
    for spec in specs:
        for fault in faults(spec, found.get(spec.name, {})):
            raise TopicMismatch(sentence(fault))


def sentence(fault: Fault) -> str:
    """What is wrong with which topic, and the way out."""
    return (
        f"topic {fault.topic} has {fault.found} and must have {fault.wanted}: {fault.endangers}."
        " Set it right with `tallyhook topics apply`; `tallyhook doctor` names everything that is wrong"
    )


def check(settings: KafkaSettings, specs: Sequence[TopicSpec], timeout_seconds: float) -> None:
    """Asks for the configurations and refuses what loses records.

    Raises:
        TopicMismatch: a topic would lose what it must keep.
        KafkaUnavailable: no answer came.
    """
    client = kafka.admin(settings)
    refuse_faults(specs, configs(client, [spec.name for spec in specs], timeout_seconds))
