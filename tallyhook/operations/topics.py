"""Topics: made, compared with what they must be, and recorded in the database with their ids and counts."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from psycopg import sql

from schemas.topics import TopicNames, TopicSpec
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.kafka import login_refusal, words
from tallyhook.postgres import connect
from tallyhook.settings import KafkaSettings, Settings

T = TypeVar("T")

_GRACE_SECONDS = 1.0
"""librdkafka says by itself that a request ran out of time; only where it does not, the wait for it ends."""
_SPREAD_SECONDS = 10.0
_LOGIN_SECONDS = 2.0
_SILENT = (
    KafkaError._TIMED_OUT,  # noqa: SLF001  librdkafka's own codes have no public name
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
)


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic as it is and as it must be.

    Args:
        partitions: how many it has; 0 when it does not exist.
        state: `ok`, `missing`, `created`, or what differs.
    """

    name: str
    topic_id: str
    partitions: int
    replication: int
    config: dict[str, str]
    state: str

    @property
    def right(self) -> bool:
        """Whether a stage may work with it."""
        return self.state in ("ok", "created")


def specs(settings: Settings) -> Iterator[TopicSpec]:
    """Every topic that the installation needs: its own, and the door's for events of the test mode."""
    names = TopicNames(settings.installation.topic_prefix)
    yield from names.specs()
    if settings.installation.livemode:
        test = TopicNames(settings.installation.test_prefix)
        yield next(spec for spec in test.specs() if spec.name == test.events)


def show(settings: Settings) -> list[TopicStatus]:
    """Compares the topics with what they must be; changes nothing. Raises KafkaUnavailable."""
    admin = kafka.admin(settings.kafka)
    found = _describe(admin, settings.kafka, [spec.name for spec in specs(settings)])
    configs = _configs(admin, settings.kafka, list(found))
    return [_compare(spec, settings, found.get(spec.name), configs.get(spec.name, {})) for spec in specs(settings)]


def apply(settings: Settings) -> list[TopicStatus]:
    """Creates what is missing, sets configurations right, and records ids and counts in the database.

    A topic with another partition count, or with another id than the recorded one, is refused (TopicMismatch): keys
    would move to other partitions, or stored positions would name other records.
    """
    admin = kafka.admin(settings.kafka)
    before = {status.name: status for status in show(settings)}
    missing = [spec for spec in specs(settings) if before[spec.name].partitions == 0]
    misconfigured = [spec for spec in specs(settings) if before[spec.name].state.startswith("config")]
    _create(admin, missing, settings)
    _configure(admin, misconfigured, settings)
    made = {spec.name for spec in missing}
    after = [
        replace(status, state="created") if status.right and status.name in made else status
        for status in _settled(settings, changed=bool(missing or misconfigured))
    ]
    wrong = [status for status in after if not status.right]
    if wrong:
        raise TopicMismatch("; ".join(f"topic {status.name}: {status.state}" for status in wrong))
    _record(settings, after)
    return after


def replication_of(settings: Settings) -> int:
    """Replicas a topic must have: 3 for a replicated installation, else what a single node can give."""
    return 3 if settings.installation.durability == "replicated" else 1


def _answer(future: "Future[T]", kafka: KafkaSettings, question: str, *, fine: int | None = None) -> T | None:
    """What the broker answered; None where it answered with the error that is `fine`. Raises KafkaUnavailable."""
    try:
        return future.result(kafka.request_timeout_seconds + _GRACE_SECONDS)
    except TimeoutError:
        reason = "no answer"
    except KafkaException as failure:
        error = failure.args[0]
        if error.code() == fine:
            return None
        if error.code() not in _SILENT:
            raise KafkaUnavailable(f"{question}: {words(error)}") from failure
        reason = words(error)
    if (refusal := login_refusal(kafka, _LOGIN_SECONDS)) is not None:
        raise KafkaUnavailable(f"{question}: Kafka at {kafka.bootstrap} lets nobody in with these settings: {refusal}")
    raise KafkaUnavailable(
        f"{question}: Kafka at {kafka.bootstrap} does not answer within {kafka.request_timeout_seconds:g} s ({reason});"
        " start it, or correct TALLYHOOK_KAFKA_BOOTSTRAP"
    )


def _describe(admin: AdminClient, kafka: KafkaSettings, names: list[str]) -> dict[str, Any]:
    futures = admin.describe_topics(TopicCollection(names), request_timeout=kafka.request_timeout_seconds)
    missing = KafkaError.UNKNOWN_TOPIC_OR_PART
    answers = {
        name: _answer(future, kafka, f"topic {name} cannot be described", fine=missing)
        for name, future in futures.items()
    }
    return {name: answer for name, answer in answers.items() if answer is not None}


def _configs(admin: AdminClient, kafka: KafkaSettings, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    futures = admin.describe_configs(resources, request_timeout=kafka.request_timeout_seconds)
    found: dict[str, dict[str, str]] = {}
    for resource, future in futures.items():
        # Deleted between the two questions: the comparison will call every setting wrong, and it is.
        missing = KafkaError.UNKNOWN_TOPIC_OR_PART
        entries = _answer(future, kafka, f"the configuration of topic {resource.name}", fine=missing) or {}
        found[resource.name] = {entry.name: str(entry.value) for entry in entries.values()}
    return found


def _compare(spec: TopicSpec, settings: Settings, found: Any, config: dict[str, str]) -> TopicStatus:
    if found is None:
        return TopicStatus(spec.name, "", 0, 0, {}, "missing: run `tallyhook topics apply`")
    partitions, replication = len(found.partitions), min((len(p.replicas) for p in found.partitions), default=0)
    wanted = _wanted_config(spec, settings)
    differs = {name: config.get(name, "") for name, value in wanted.items() if config.get(name) != value}
    state = "ok"
    if partitions != settings.installation.partitions:
        state = (
            f"has {partitions} partitions, the installation has {settings.installation.partitions}"
            " (TALLYHOOK_PARTITIONS); a key would move to another partition"
        )
    elif replication < replication_of(settings):
        state = f"has {replication} replicas, durability `replicated` needs {replication_of(settings)}"
    elif differs:
        state = "config " + ", ".join(f"{name}={value} instead of {wanted[name]}" for name, value in differs.items())
    shown = {name: config.get(name, "") for name in wanted}
    return TopicStatus(spec.name, str(found.topic_id), partitions, replication, shown, state)


def _wanted_config(spec: TopicSpec, settings: Settings) -> dict[str, str]:
    replicated = settings.installation.durability == "replicated"
    return spec.config | {"min.insync.replicas": "2" if replicated else "1"}


def _create(admin: AdminClient, missing: list[TopicSpec], settings: Settings) -> None:
    if not missing:
        return
    topics = [
        NewTopic(
            spec.name,
            num_partitions=settings.installation.partitions,
            replication_factor=replication_of(settings),
            config=_wanted_config(spec, settings),
        )
        for spec in missing
    ]
    bound = settings.kafka.request_timeout_seconds
    for name, future in admin.create_topics(topics, operation_timeout=bound, request_timeout=bound).items():
        # Another `topics apply` at the same moment made it: that is as good.
        exists = KafkaError.TOPIC_ALREADY_EXISTS
        _answer(future, settings.kafka, f"topic {name} cannot be created", fine=exists)


def _settled(settings: Settings, changed: bool) -> list[TopicStatus]:
    """What `show` finds; after a change it is asked again for a while, for brokers confirm first and spread later."""
    deadline = time.monotonic() + (_SPREAD_SECONDS if changed else 0.0)
    while True:
        found = show(settings)
        if all(status.right for status in found) or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def _configure(admin: AdminClient, wrong: list[TopicSpec], settings: Settings) -> None:
    if not wrong:
        return
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            spec.name,
            incremental_configs=[
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in _wanted_config(spec, settings).items()
            ],
        )
        for spec in wrong
    ]
    futures = admin.incremental_alter_configs(resources, request_timeout=settings.kafka.request_timeout_seconds)
    for resource, future in futures.items():
        _answer(future, settings.kafka, f"topic {resource.name} cannot be configured")


def _record(settings: Settings, statuses: list[TopicStatus]) -> None:
    table = sql.Identifier(settings.installation.schema_name, "installed_topics")
    insert = sql.SQL(
        "INSERT INTO {} (topic, topic_id, partitions) VALUES (%s, %s, %s) ON CONFLICT (topic) DO NOTHING"
    ).format(table)
    with connect(settings.database, "topics") as connection, connection.transaction():
        for status in statuses:
            connection.execute(insert, (status.name, status.topic_id, status.partitions))
        recorded = connection.execute(sql.SQL("SELECT topic, topic_id, partitions FROM {}").format(table)).fetchall()
    known = {topic: (topic_id, partitions) for topic, topic_id, partitions in recorded}
    for status in statuses:
        if known[status.name] != (status.topic_id, status.partitions):
            topic_id, partitions = known[status.name]
            raise TopicMismatch(
                f"topic {status.name} is not the one that was installed (id {topic_id}, {partitions} partitions; now id"
                f" {status.topic_id}, {status.partitions} partitions): it was deleted and made anew,"
                " and stored positions name records that are gone."
                " Restore it, or install under a new prefix and schema."
            )
