"""The topics as the door finds them, at its start and while it runs."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import Message
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from schemas.topics import TopicNames
from tallyhook.kafka import admin
from tallyhook.settings import Installation, KafkaSettings
from tests.integration.ingress.conftest import Start, create_topics
from tests.integration.ingress.events import event, headers_of
from tests.integration.ingress.process import IngressProcess

Records = Callable[[str], list[Message]]
LIMITED = "bodies are limited by a topic, not by the endpoint's max_body_bytes"


def test_missing_topics_end_the_process_with_the_way_out(start: Start) -> None:
    """Nothing is accepted into topics that do not exist."""
    ingress = start(ready=False)

    assert ingress.wait() == 1
    assert "tallyhook topics apply" in ingress.await_log("ended")["reason"]


def test_another_partition_count_ends_the_process(
    kafka_settings: KafkaSettings, names: TopicNames, start: Start, installation: Installation
) -> None:
    """Keys would move to other partitions."""
    create_topics(kafka_settings, {names.events: installation.partitions + 1, names.dead_letters: 1})
    ingress = start(ready=False)

    assert ingress.wait() == 1
    reason = ingress.await_log("ended")["reason"]
    assert f"{installation.partitions + 1} partitions" in reason


def test_partitions_that_are_added_under_it_end_the_process(
    kafka_settings: KafkaSettings, topics: TopicNames, ingress: IngressProcess, installation: Installation
) -> None:
    """From then on keys would move: it does not go on, and each new start tells why."""
    client = admin(kafka_settings)
    grown = [NewPartitions(topics.events, installation.partitions + 1)]
    for answer in client.create_partitions(grown).values():
        answer.result(20)

    assert ingress.wait() == 1
    assert f"{installation.partitions + 1} partitions" in ingress.await_log("ended")["reason"]
    assert ingress.await_log("the topics are looked at again")["level"] == "warning"


def test_a_topic_with_a_lower_record_limit_lowers_the_limit_of_bodies(
    kafka_settings: KafkaSettings, names: TopicNames, start: Start, installation: Installation, records: Records
) -> None:
    """What cannot be stored is never answered 200, and the log names the topic and its limit."""
    create_topics(kafka_settings, {names.events: installation.partitions}, {"max.message.bytes": "100000"})
    create_topics(kafka_settings, {names.dead_letters: installation.partitions})
    ingress = start()

    assert ingress.post(event(note="x" * 150_000)).status == 413
    assert ingress.post(event(note="x" * 80_000)).status == 200
    with ThreadPoolExecutor(16) as pool:
        bodies = [event(f"evt_{n}", note="x" * 20_000) for n in range(64)]
        assert {200} == {answer.status for answer in pool.map(ingress.post, bodies)}

    warning = ingress.await_log(LIMITED)
    assert warning["record_limits_bytes"][names.events] == 100_000
    assert warning["wanted_bytes"] == {"default": 262_144}
    assert warning["max_body_bytes"] == 100_000 - 16_384
    assert len(records(names.events)) == 65


def test_a_record_limit_that_changes_is_noticed_without_a_restart(
    kafka_settings: KafkaSettings, topics: TopicNames, start: Start, installation: Installation, records: Records
) -> None:
    """Lowered on the stream's output, and raised again: the limit of bodies follows, and nothing is lost or turned
    round meanwhile."""
    create_topics(kafka_settings, {topics.state_changes: installation.partitions})
    ingress = start()
    large = event(note="x" * 150_000)
    assert ingress.post(large).status == 200
    stop, sent = threading.Event(), 1

    def send() -> int:
        version = sent
        while not stop.is_set():
            answer = ingress.post(event(f"evt_{version}", "dep_2", version=version), message_id="x")
            version += answer.status == 200
        return version

    with ThreadPoolExecutor(1) as pool:
        sender = pool.submit(send)
        for limit_bytes, status in ((100_000, 413), (1_000_000, 200)):
            set_record_limit(kafka_settings, topics.state_changes, limit_bytes)
            await_status(ingress, large, status)
        stop.set()
        last = sender.result(30)

    found = [record for record in records(topics.events) if record.key() == b"dep_2"]
    versions = [int(headers_of(record)["ce_version"]) for record in sorted(found, key=lambda r: r.offset() or 0)]
    assert versions == sorted(versions)
    assert set(versions) == set(range(sent, last))
    assert ingress.process.poll() is None


def set_record_limit(settings: KafkaSettings, topic: str, limit_bytes: int) -> None:
    """Changes max.message.bytes of a topic."""
    entry = ConfigEntry("max.message.bytes", str(limit_bytes), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(settings)
    for answer in client.incremental_alter_configs([resource]).values():
        answer.result(20)


def await_status(ingress: IngressProcess, body: bytes, status: int) -> None:
    """Posts until the answer has this status."""
    deadline = time.monotonic() + 40
    while ingress.post(body).status != status:
        assert time.monotonic() < deadline
        ingress.log_lines()  # a log that nobody reads would stop the process
        time.sleep(0.2)


def test_test_events_without_their_topic_are_dead_letters(
    kafka_settings: KafkaSettings, names: TopicNames, start: Start, installation: Installation, records: Records
) -> None:
    """They are kept with a reason and a warning, and never refused for ever."""
    create_topics(kafka_settings, {names.events: installation.partitions, names.dead_letters: installation.partitions})
    ingress = start()

    assert ingress.post(event(livemode=False)).status == 200

    [letter] = records(names.dead_letters)
    assert headers_of(letter)["ce_reason"] == "wrong_livemode"
    assert records(names.events) == []


def test_a_live_event_on_a_test_installation_is_a_dead_letter(
    topics: TopicNames, start: Start, records: Records
) -> None:
    """An installation for tests never takes real money."""
    ingress = start(TALLYHOOK_LIVEMODE="false")

    assert [ingress.post(event(livemode=mode)).status for mode in (True, False)] == [200, 200]

    [letter] = records(topics.dead_letters)
    assert headers_of(letter)["ce_reason"] == "wrong_livemode"
    [record] = records(topics.events)
    assert headers_of(record)["ce_livemode"] == "false"
