"""The least ACLs of Kafka with which each process works, as one table."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from schemas.topics import TopicNames
from tallyhook.kafka import READER_GROUP
from tallyhook.settings import Installation

Process = Literal["ingress", "stream", "sink", "relay", "topics", "redrive", "audit", "correlations"]
Resource = Literal["topic", "group", "transactional-id", "cluster"]
Pattern = Literal["literal", "prefixed"]
Operation = Literal["Read", "Write", "Create", "Describe", "DescribeConfigs", "AlterConfigs"]

PROCESSES: Mapping[Process, str] = {
    "ingress": "`tallyhook ingress`",
    "stream": "`tallyhook stream`",
    "sink": "`tallyhook sink`",
    "relay": "`tallyhook relay`, every shard",
    "topics": "`tallyhook topics apply`",
    "redrive": "`tallyhook redrive` and `tallyhook backfill`",
    "audit": "`tallyhook audit`, `doctor`, `topics show`, `relay recover`, `sink accept-loss`",
    "correlations": "the merchant's own service, where it tells by the topic whose a deposit is",
}
"""Who has rights of its own, and what that is."""

CLUSTER = "kafka-cluster"


@dataclass(frozen=True, slots=True)
class Right:
    """One ACL: it allows, from every host.

    Args:
        process: who needs it.
        principal: the same as Kafka knows it, such as `User:tallyhook-sink`.
        name: of the resource, or what its name begins with where `pattern` is prefixed.
        purpose: what it is for.
        display: without it the process works, and says what it cannot show or check.
    """

    process: Process
    principal: str
    resource: Resource
    name: str
    pattern: Pattern
    operation: Operation
    purpose: str
    display: bool = False


def default_principals() -> dict[Process, str]:
    """A user for each process."""
    return {process: f"User:tallyhook-{process}" for process in PROCESSES}


def rights(installation: Installation, principals: Mapping[Process, str]) -> list[Right]:
    """Every right that the installation needs, by process. In Kafka, Read and Write contain Describe.

    Args:
        principals: by process; several may share one.
    """
    return [
        Right(process, principals[process], row.resource, row.name, row.pattern, operation, row.purpose, row.display)
        for process, rows in _table(installation).items()
        for row in rows
        for operation in row.operations
    ]


@dataclass(frozen=True, slots=True)
class _Row:
    resource: Resource
    name: str
    operations: tuple[Operation, ...]
    purpose: str
    pattern: Pattern = "literal"
    display: bool = False


_READER = _Row("group", READER_GROUP, ("Describe",), "read without being a member of a group")


def _topic(name: str, *operations: Operation, to: str, pattern: Pattern = "literal", display: bool = False) -> _Row:
    return _Row("topic", name, operations, to, pattern, display)


def _topics(names: Iterable[str], *operations: Operation, to: str, display: bool = False) -> list[_Row]:
    return [_topic(name, *operations, to=to, display=display) for name in names]


def _table(installation: Installation) -> dict[Process, list[_Row]]:
    names = TopicNames(installation.topic_prefix)
    test = [TopicNames(installation.test_prefix).events] if installation.livemode else []
    return {
        "ingress": _ingress(names, test),
        "stream": _stream(names, installation),
        "sink": _sink(names, test, installation),
        "relay": _relay(names, installation),
        "topics": _apply(names, test),
        "redrive": _redrive(names, test),
        "audit": _audit(names, test, installation),
        "correlations": [_topic(names.deposit_correlations, "Write", to="tell whose a deposit is")],
    }


def _ingress(names: TopicNames, test: Sequence[str]) -> list[_Row]:
    written = [names.events, names.dead_letters, *test]
    return [
        *_topics(written, "Write", to="store what came"),
        *_topics(written, "DescribeConfigs", to="check retention and record limit", display=True),
        _topic(names.state_changes, "Describe", "DescribeConfigs", to="bound bodies by its record limit", display=True),
    ]


def _stream(names: TopicNames, installation: Installation) -> list[_Row]:
    group = installation.group_id("streams")
    changelog = f"{group}-{CHANGELOG}"
    written = [names.state_changes, names.dead_letters]
    return [
        _topic(names.events, "Read", to="judge the events"),
        _Row("group", group, ("Read",), "share the partitions and commit positions"),
        *_topics(written, "Write", to="pass deliveries on"),
        _topic(changelog, "Create", to="make it, asked for at every start"),
        _topic(changelog, "Read", "Write", to="keep what was seen, and read it again"),
        _topic(names.events, "DescribeConfigs", to="check its retention", display=True),
        *_lag(names, installation, besides=(names.events, group)),
    ]


def _sink(names: TopicNames, test: Sequence[str], installation: Installation) -> list[_Row]:
    groups = [installation.group_id(stage) for stage in ("sink", "sink-dead-letters", "sink-correlations")]
    applied = [names.state_changes, names.dead_letters]
    return [
        *_topics(applied, "Read", to="apply what comes"),
        _topic(names.deposit_correlations, "Read", to="learn whose a deposit is"),
        *(_Row("group", group, ("Read",), "share the partitions") for group in groups),
        *_topics(test, "Read", to="count the numbers of test events, so that they are no gaps"),
        _READER,
        *_topics(applied, "DescribeConfigs", to="check retention", display=True),
        *_lag(names, installation, besides=(*applied, *groups)),
    ]


def _relay(names: TopicNames, installation: Installation) -> list[_Row]:
    return [
        _topic(names.effect(""), "Write", to="send effects", pattern="prefixed"),
        _topic(names.balance_entries, "Write", to="send balance entries"),
        _topic(names.relay_progress, "Read", "Write", to="know what was sent"),
        _Row("transactional-id", installation.group_id("relay-"), ("Write",), "send each row once", "prefixed"),
        _READER,
        *_lag(names, installation),
    ]


def _apply(names: TopicNames, test: Sequence[str]) -> list[_Row]:
    every = [*(spec.name for spec in names.specs()), *test]
    return _topics(every, "Create", "Describe", "DescribeConfigs", "AlterConfigs", to="make it and set it right")


def _redrive(names: TopicNames, test: Sequence[str]) -> list[_Row]:
    return _topics([names.events, names.dead_letters, *test], "Write", to="send events again, or fetched ones")


def _audit(names: TopicNames, test: Sequence[str], installation: Installation) -> list[_Row]:
    group = installation.group_id("streams")
    every = [spec.name for spec in names.specs()]
    return [
        *_topics(
            [name for name in every if name != names.deposit_correlations], "Read", to="compare with the database"
        ),
        _Row("group", group, ("Describe",), "read the stream's positions"),
        _READER,
        *_topics([names.deposit_correlations, *test], "Describe", to="see whether it is there"),
        *_topics([*every, *test], "DescribeConfigs", to="check the configuration"),
        _Row("cluster", CLUSTER, ("DescribeConfigs",), "check the brokers' settings", display=True),
    ]


CHANGELOG = "objects-changelog"
"""What Faust calls the topic of its table, behind the group's id."""


def _lag(names: TopicNames, installation: Installation, besides: Sequence[str] = ()) -> list[_Row]:
    """What every process of stream, sink and relay reads to show how late each of them is, beside its own."""
    topics = [names.events, names.state_changes, names.dead_letters]
    groups = [installation.group_id(stage) for stage in ("streams", "sink", "sink-dead-letters")]
    to = "show how late each stage is"
    return [
        *_topics([name for name in topics if name not in besides], "Read", "DescribeConfigs", to=to, display=True),
        *(_Row("group", group, ("Describe",), to, display=True) for group in groups if group not in besides),
    ]
