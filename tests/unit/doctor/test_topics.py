"""Topics: what each may and must be configured like, and what is told of one that differs."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource
from structlog.testing import capture_logs

from schemas.topics import REPLAY_WINDOW_MS, TopicNames, TopicSpec
from tallyhook import topic_rules
from tallyhook.errors import KafkaUnavailable, TopicMismatch
from tallyhook.operations import topics as topic_operation
from tallyhook.operations.doctor import limits, topics
from tallyhook.operations.doctor.broker import Topic
from tallyhook.settings import IngressSettings, Installation, KafkaSettings, Settings, SinkSettings, load

NAMES = TopicNames("shop")
OVERHEAD_BYTES = 16_384


@pytest.fixture
def settings() -> Settings:
    """Of a single node."""
    made = replace(load(), installation=Installation(topic_prefix="shop", partitions=4))
    return replace(made, ingress=IngressSettings(), sink=SinkSettings(), kafka=KafkaSettings(bootstrap="b:1"))


def right(settings: Settings, **changes: Mapping[str, str]) -> dict[str, Topic]:
    """The installation's topics as `topics apply` makes them, but for the changes by attribute of `TopicNames`."""
    replicated = settings.installation.durability == "replicated"
    insync = {"min.insync.replicas": "2" if replicated else "1", "max.message.bytes": "1048588"}
    made = {
        spec.name: Topic(spec.name, f"id-{spec.name}", 4, 3 if replicated else 1, spec.config | insync)
        for spec in topic_operation.specs(settings)
    }
    for attribute, change in changes.items():
        name = getattr(NAMES, attribute)
        made[name] = replace(made[name], config={**made[name].config, **change})
    return made


def found(settings: Settings, there: Mapping[str, Topic]) -> list[tuple[str, str]]:
    """Ids and severities."""
    installed = {topic.name: (topic.topic_id, topic.partitions) for topic in there.values()}
    return [(finding.id, finding.severity) for finding in topics.examine(settings, there, installed)]


def spec_of(name: str) -> TopicSpec:
    """The specification of one topic."""
    return next(spec for spec in NAMES.specs() if spec.name == name)


def test_topics_as_apply_makes_them_are_right(settings: Settings) -> None:
    """No finding at either durability."""
    assert found(settings, right(settings)) == []
    replicated = settings.installation.model_copy(update={"durability": "replicated"})
    settings = replace(settings, installation=replicated)
    assert found(settings, right(settings)) == []


@pytest.mark.parametrize("attribute", ["events", "state_changes", "dead_letters"])
def test_retention_below_the_retries_of_the_gateway_breaks_no_loss(settings: Settings, attribute: str) -> None:
    """92 hours are the bound, in all three topics that a stage reads; -1 is for ever."""

    def with_retention(milliseconds: int) -> list[tuple[str, str]]:
        return found(settings, right(settings, **{attribute: {"retention.ms": str(milliseconds)}}))

    assert with_retention(REPLAY_WINDOW_MS - 1) == [("retention_short", "breaks")]
    assert with_retention(REPLAY_WINDOW_MS) == [("retention_low", "warning")]
    assert with_retention(-1) == []


def test_compaction_where_it_must_not_and_where_it_must_be(settings: Settings) -> None:
    """Both policies at once are as wrong as the other one alone."""
    for policy in ("compact", "compact,delete"):
        assert found(settings, right(settings, events={"cleanup.policy": policy})) == [("compacted", "breaks")]
        assert found(settings, right(settings, balance_entries={"cleanup.policy": policy})) == [("compacted", "breaks")]
    for policy in ("delete", "compact,delete"):
        one = found(settings, right(settings, relay_progress={"cleanup.policy": policy}))
        assert one == [("not_compacted", "breaks")]


def test_a_bound_by_size_is_warned_of(settings: Settings) -> None:
    """It deletes whenever a rush comes."""
    assert found(settings, right(settings, events={"retention.bytes": "1"})) == [("retention_bytes", "warning")]


def test_a_replicated_installation_demands_replicas(settings: Settings) -> None:
    """Three of them, two in sync, and no leader that was behind."""
    replicated = settings.installation.model_copy(update={"durability": "replicated"})
    settings = replace(settings, installation=replicated)
    wrong = right(settings, events={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    wrong[NAMES.dead_letters] = replace(wrong[NAMES.dead_letters], replication=2)
    assert sorted(found(settings, wrong)) == [
        ("insync_replicas", "breaks"),
        ("replication_low", "breaks"),
        ("unclean_election", "breaks"),
    ]


def test_more_in_sync_replicas_than_there_are_let_nothing_be_written(settings: Settings) -> None:
    """On a single node too."""
    (one,) = topics.examine(settings, right(settings, events={"min.insync.replicas": "2"}), None)
    assert (one.id, one.promises) == ("insync_replicas", ("P8",))


def test_a_configuration_that_is_not_told_is_no_broken_promise(settings: Settings) -> None:
    """It is said that nothing was checked."""
    there = right(settings)
    there[NAMES.events] = replace(there[NAMES.events], config={})
    assert found(settings, there) == [("topic_config_untold", "warning")]


def test_bodies_are_compared_with_all_three_topics(settings: Settings) -> None:
    """Each limit is named, and what would do: the body and 16 KiB."""
    enough = settings.ingress.max_body_bytes + OVERHEAD_BYTES
    assert list(limits.examine(settings, right(settings, events={"max.message.bytes": str(enough)}), ())) == []
    for attribute in ("events", "state_changes", "dead_letters"):
        low = right(settings, **{attribute: {"max.message.bytes": str(enough - 1)}})
        (one,) = limits.examine(settings, low, ())
        assert (one.id, one.severity, one.subject) == ("record_limit", "breaks", f"topic {getattr(NAMES, attribute)}")
        for name in (NAMES.events, NAMES.state_changes, NAMES.dead_letters):
            assert f"max.message.bytes of {name}=" in one.found
        assert f"at least {enough}" in one.wanted


def test_effects_must_fit_into_their_topics(settings: Settings) -> None:
    """The relay never skips one that does not."""
    low = str(settings.sink.max_payload_bytes + OVERHEAD_BYTES - 1)
    (one,) = limits.examine(settings, right(settings, balance_entries={"max.message.bytes": low}), ())
    assert (one.id, one.severity) == ("payload_limit", "breaks")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"cleanup.policy": "compact", "retention.ms": "-1"}, "cleanup.policy=compact"),
        ({"cleanup.policy": "delete", "retention.ms": "3600000"}, "retention.ms=3600000 (1 h)"),
    ],
)
def test_a_start_is_refused_with_the_way_out(config: dict[str, str], words: str) -> None:
    """Topic, what it has, and the command."""
    with pytest.raises(TopicMismatch) as refused:
        topic_rules.refuse_faults([spec_of(NAMES.events)], {NAMES.events: config})
    for part in (NAMES.events, words, "tallyhook topics apply"):
        assert part in str(refused.value)


def test_a_start_goes_on_when_the_cluster_does_not_tell() -> None:
    """A broker that forbids DescribeConfigs costs a warning and no start."""
    with capture_logs() as logged:
        topic_rules.refuse_faults([spec_of(NAMES.events)], {})
    assert [(record["log_level"], record["topics"]) for record in logged] == [("warning", [NAMES.events])]


class Cluster:
    """Answers DescribeConfigs with one error."""

    def __init__(self, error: int) -> None:
        self._error = error

    def describe_configs(self, resources: list[ConfigResource], **_: Any) -> dict[ConfigResource, "Future[Any]"]:
        """As the admin client does."""
        answers = {}
        for resource in resources:
            answers[resource] = Future[Any]()
            answers[resource].set_exception(KafkaException(KafkaError(self._error)))
        return answers


def test_a_refused_question_is_told_from_none_answered() -> None:
    """The right is missing: not told. No answer: unavailable, and asked again by whoever waits."""
    forbidden = cast("AdminClient", Cluster(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    silent = cast("AdminClient", Cluster(KafkaError._TIMED_OUT))
    assert topic_rules.configs(forbidden, ["a"], 1) == {}
    with pytest.raises(KafkaUnavailable, match="a: "):
        topic_rules.configs(silent, ["a"], 1)
