"""Topics: there, the ones that were installed, with the installation's count, and keeping what they must keep."""

from collections.abc import Iterator, Mapping

from schemas.topics import TopicSpec
from tallyhook import topic_rules
from tallyhook.operations import topics
from tallyhook.operations.doctor.broker import Topic
from tallyhook.operations.doctor.findings import Finding, Promise
from tallyhook.settings import Settings

APPLY = "tallyhook topics apply"
Installed = Mapping[str, tuple[str, int]]
_RULE_PROMISES: Mapping[topic_rules.Rule, tuple[Promise, ...]] = {
    "compacted": ("P1",),
    "not_compacted": ("P1", "P2"),
    "retention_short": ("P1",),
}


def set_config(settings: Settings, topic: str, change: str) -> str:
    """The command that sets one configuration which `topics apply` does not manage."""
    return (
        f"kafka-configs.sh --bootstrap-server {settings.kafka.bootstrap} --alter --topic {topic} --add-config {change}"
    )


def examine(settings: Settings, found: Mapping[str, Topic], installed: Installed | None) -> Iterator[Finding]:
    """Every danger of the topics.

    Args:
        found: the topics that exist.
        installed: id and partition count by topic, as `topics apply` recorded them; None when that is not known.
    """
    for spec in topics.specs(settings):
        topic = found.get(spec.name)
        if topic is None:
            yield Finding(
                "topic_missing",
                "breaks",
                ("P1", "P8"),
                f"topic {spec.name}",
                "does not exist",
                f"{settings.installation.partitions} partitions",
                "the processes that work with it refuse to start",
                APPLY,
            )
            continue
        yield from _identity(settings, topic, installed)
        yield from _replicas(settings, topic)
        yield from _config(settings, spec, topic)


def _identity(settings: Settings, topic: Topic, installed: Installed | None) -> Iterator[Finding]:
    subject, wanted = f"topic {topic.name}", settings.installation.partitions
    recorded = None if installed is None else installed.get(topic.name)
    counts = {topic.partitions} if recorded is None else {topic.partitions, recorded[1]}
    if counts != {wanted}:
        at_first = "" if recorded is None else f", {recorded[1]} when it was installed"
        yield Finding(
            "topic_partitions",
            "breaks",
            ("P2", "P3"),
            subject,
            f"{topic.partitions} partitions{at_first}",
            f"{wanted} partitions, as TALLYHOOK_PARTITIONS and every topic of the installation",
            "the events of one object lie in several partitions, so that their order is lost",
            f"set TALLYHOOK_PARTITIONS={topic.partitions} if all topics have that many, else drain into another prefix"
            f" (TALLYHOOK_TOPIC_PREFIX, TALLYHOOK_SCHEMA): tallyhook migrate && {APPLY}",
        )
    if installed is None:
        return
    if recorded is None:
        yield Finding(
            "topic_unrecorded",
            "breaks",
            ("P1", "P8"),
            subject,
            "not recorded in the database",
            f"id {topic.topic_id} and {topic.partitions} partitions recorded",
            "the processes that work with it refuse to start",
            APPLY,
        )
    elif recorded[0] != topic.topic_id:
        yield Finding(
            "topic_replaced",
            "breaks",
            ("P1", "P2"),
            subject,
            f"id {topic.topic_id}",
            f"id {recorded[0]}, as at the installation",
            "stored positions name records of another topic: some would be skipped, others applied twice",
            "restore the topic, or install under another TALLYHOOK_TOPIC_PREFIX and TALLYHOOK_SCHEMA:"
            f" tallyhook migrate && {APPLY}",
        )


def _replicas(settings: Settings, topic: Topic) -> Iterator[Finding]:
    subject = f"topic {topic.name}"
    replicated = settings.installation.durability == "replicated"
    wanted = topics.replication_of(settings)
    if topic.replication < wanted:
        yield Finding(
            "replication_low",
            "breaks",
            ("P1",),
            subject,
            f"{topic.replication} replicas",
            f"{wanted} replicas, since TALLYHOOK_DURABILITY=replicated",
            "events that were answered 200 are gone with one disk",
            f"kafka-reassign-partitions.sh --bootstrap-server {settings.kafka.bootstrap} --execute"
            f" --reassignment-json-file FILE, where FILE gives {topic.name} {wanted} replicas",
        )
    insync = topic.config.get("min.insync.replicas")
    if insync is not None and (int(insync) > topic.replication or (replicated and int(insync) < 2)):
        too_many = int(insync) > topic.replication
        yield Finding(
            "insync_replicas",
            "breaks",
            ("P8",) if too_many else ("P1",),
            subject,
            f"min.insync.replicas={insync} with {topic.replication} replicas",
            "min.insync.replicas=" + ("2" if replicated else "1"),
            "nothing can be written" if too_many else "an event is answered 200 when a single broker has it",
            APPLY,
        )
    if replicated and topic.config.get("unclean.leader.election.enable") == "true":
        yield Finding(
            "unclean_election",
            "breaks",
            ("P1", "P2"),
            subject,
            "unclean.leader.election.enable=true",
            "unclean.leader.election.enable=false",
            "a broker that was behind may become leader, and what it had not yet received is gone",
            set_config(settings, topic.name, "unclean.leader.election.enable=false"),
        )


def _config(settings: Settings, spec: TopicSpec, topic: Topic) -> Iterator[Finding]:
    subject, config = f"topic {topic.name}", topic.config
    if "cleanup.policy" not in config:
        yield Finding(
            "topic_config_untold",
            "warning",
            ("P1",),
            subject,
            "its configuration is not told to this user",
            "the right to DescribeConfigs",
            "retention, compaction and record limits are not checked",
            f"kafka-acls.sh --bootstrap-server {settings.kafka.bootstrap} --add --operation DescribeConfigs"
            f" --topic {topic.name} --allow-principal User:...",
        )
        return
    short = False
    for fault in topic_rules.faults(spec, config):
        short = short or fault.rule == "retention_short"
        promises = _RULE_PROMISES[fault.rule]
        yield Finding(fault.rule, "breaks", promises, subject, fault.found, fault.wanted, fault.endangers, APPLY)
    if spec.cleanup != "delete":
        return
    retention = int(config.get("retention.ms", -1))
    if 0 <= retention < spec.retention_ms and not short:
        yield Finding(
            "retention_low",
            "warning",
            ("P1",) if spec.least_retention_ms else ("P2",),
            subject,
            f"retention.ms={retention} ({retention / topic_rules.HOUR_MS:.4g} h)",
            f"retention.ms={spec.retention_ms} ({spec.retention_ms / topic_rules.HOUR_MS:g} h)",
            "whoever reads it and stands still for longer loses records",
            APPLY,
        )
    size = int(config.get("retention.bytes", -1))
    if size >= 0:
        yield Finding(
            "retention_bytes",
            "warning",
            ("P1",) if spec.least_retention_ms else ("P2",),
            subject,
            f"retention.bytes={size}",
            "retention.bytes=-1",
            "a rush of events deletes records before their time",
            set_config(settings, topic.name, "retention.bytes=-1"),
        )
