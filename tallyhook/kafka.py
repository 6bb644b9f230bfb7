"""How clients of Kafka are built: one place knows transport, authentication and the options that keep the promises."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tallyhook.errors import KafkaUnavailable, SettingsError
from tallyhook.settings import KafkaSettings

Config = dict[str, Any]

READER_GROUP = "tallyhook-reader"
"""Of readers outside of any group: librdkafka demands one, looks for its coordinator, and never joins it."""

_RIGHTS = "; `tallyhook topics acl` prints the rights that each process needs"
_REFUSALS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "this user lacks a right on the topic" + _RIGHTS,
    KafkaError.GROUP_AUTHORIZATION_FAILED: "this user lacks Read on its consumer group, or Describe on "
    f"{READER_GROUP}{_RIGHTS}",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "this user lacks a right on the transactional id" + _RIGHTS,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "this user lacks a right on the cluster" + _RIGHTS,
    KafkaError.SASL_AUTHENTICATION_FAILED: "correct TALLYHOOK_KAFKA_SASL_USERNAME or TALLYHOOK_KAFKA_SASL_PASSWORD",
    KafkaError._AUTHENTICATION: "correct TALLYHOOK_KAFKA_SASL_...",  # noqa: SLF001  it has no public name
    KafkaError._SSL: "correct TALLYHOOK_KAFKA_SSL_...",  # noqa: SLF001  it has no public name
}


def words(error: KafkaError) -> str:
    """What Kafka said; where it refused for want of a right or of a login, also what to do next."""
    code = error.code()
    return f"{error.str()} ({_REFUSALS[code]})" if code in _REFUSALS else error.str()


def why_no_positions(reader: Consumer, error: KafkaError, group: str) -> str:
    """Why the positions of a group are not told: librdkafka says no more than that time ran out where it is refused.

    Args:
        reader: asked for them in vain; its own events say more.
        error: what the question ended with.
    """
    event = reader.poll(0)
    told = event.error() if event is not None else None
    return f"consumer group {group}: {words(told if told is not None and refused(told) else error)}"


def refused(error: KafkaError) -> bool:
    """Whether Kafka refused for want of a right or of a login, which only a person can mend."""
    return error.code() in _REFUSALS


def client_config(kafka: KafkaSettings) -> Config:
    """librdkafka's options for transport and authentication; raises SettingsError when no bootstrap is set."""
    if kafka.bootstrap is None:
        raise SettingsError("TALLYHOOK_KAFKA_BOOTSTRAP is not set: give host:port of a broker, or use `tallyhook up`")
    if kafka.sasl_mechanism == "OAUTHBEARER":
        raise SettingsError(
            "TALLYHOOK_KAFKA_SASL_MECHANISM=OAUTHBEARER: not supported, since the stream's client has nobody to ask for"
            " tokens; take SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN, or client certificates"
        )
    config: Config = {
        "bootstrap.servers": kafka.bootstrap,
        "security.protocol": kafka.security_protocol,
        "socket.timeout.ms": int(kafka.request_timeout_seconds * 1000),
        "reconnect.backoff.max.ms": 2000,
        "log.connection.close": False,
        "log_level": 4,  # warnings and worse: the rest is about sockets coming and going
        "logger": logging.getLogger("librdkafka"),
    }
    optional = {
        "sasl.mechanism": kafka.sasl_mechanism,
        "sasl.username": kafka.sasl_username,
        "sasl.password": kafka.sasl_password.get_secret_value() if kafka.sasl_password else None,
        "ssl.ca.location": str(kafka.ssl_ca_location) if kafka.ssl_ca_location else None,
        "ssl.certificate.location": str(kafka.ssl_certificate_location) if kafka.ssl_certificate_location else None,
        "ssl.key.location": str(kafka.ssl_key_location) if kafka.ssl_key_location else None,
        "ssl.key.password": kafka.ssl_key_password.get_secret_value() if kafka.ssl_key_password else None,
    }
    config.update({name: value for name, value in optional.items() if value is not None})
    return config


def producer(
    kafka: KafkaSettings,
    *,
    linger_ms: float,
    delivery_timeout_seconds: float,
    transactional_id: str | None = None,
    on_fatal: Callable[[KafkaError], None],
    extra: Mapping[str, Any] | None = None,
) -> Producer:
    """An idempotent producer with Java's partitioner, so that a key has one partition whoever sends it.

    Args:
        linger_ms: how long a record waits for company.
        delivery_timeout_seconds: after this a record that is not confirmed counts as failed.
        on_fatal: called from librdkafka's thread when the producer can never send again.
    """
    config = client_config(kafka) | {
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",  # librdkafka's default agrees with Java on few keys only
        "linger.ms": linger_ms,
        "delivery.timeout.ms": int(delivery_timeout_seconds * 1000),
        "queue.buffering.max.messages": 100_000,
        "queue.buffering.max.kbytes": 262_144,
        "batch.size": 1 << 20,
        "error_cb": lambda error: on_fatal(error) if error.fatal() else None,
    }
    if transactional_id is not None:
        config["transactional.id"] = transactional_id
    return Producer(config | dict(extra or {}))


class PollThread(threading.Thread):
    """Serves a producer's delivery reports; reports that arrive in one poll are handed over in one call.

    Args:
        client: the producer.
        after_poll: called on this thread after each poll that served reports.
    """

    def __init__(self, client: Producer, after_poll: Callable[[], None] | None = None) -> None:
        super().__init__(name="librdkafka-poll", daemon=True)
        self._client, self._after_poll = client, after_poll
        self._stopping = threading.Event()

    def run(self) -> None:
        """Polls until `stop`; time-outs stay below a second so that signal handlers get their turn."""
        while not self._stopping.is_set():
            if self._client.poll(0.2) and self._after_poll is not None:
                self._after_poll()

    def stop(self) -> None:
        """Ends the thread within a second."""
        self._stopping.set()
        self.join(timeout=1)


def unconfirmed(error: KafkaError | None, message: Message) -> str | None:
    """Why a delivery report confirms nothing; None when the record has its place in the topic.

    A report without an error is not enough. When Kafka refuses the first batch of a partition that has no leader yet
    and takes the next one, which was under way as well, librdkafka 2.16 takes the first for stored with it
    (confluent-kafka-go#921): success is reported for records that are in no log. Only such a report has no offset.
    """
    if error is not None:
        return words(error)
    if message.offset() is None:
        return "Kafka gave it no offset; it may not be stored"
    return None


def admin(kafka: KafkaSettings) -> AdminClient:
    """A client for topics and their settings."""
    return AdminClient(client_config(kafka))


def login_refusal(kafka: KafkaSettings, timeout_seconds: float) -> str | None:
    """Why the cluster does not let this client in, asked by a new one; None where that is not why it is silent.

    To librdkafka a refused login is a broker that is away: only its events tell, which an admin client does not show.
    """
    found: list[str] = []
    asking = Consumer(
        client_config(kafka)
        | {"group.id": READER_GROUP, "error_cb": lambda error: found.append(words(error)) if refused(error) else None}
    )
    deadline = time.monotonic() + timeout_seconds
    try:
        while not found and time.monotonic() < deadline:
            asking.poll(0.1)
    finally:
        asking.close()
    return found[0] if found else None


def plain_reader(kafka: KafkaSettings, *, isolation: str = "read_committed", **options: Any) -> Consumer:
    """A consumer outside of any group that never commits and never resets its position by itself.

    Raises SettingsError for options that would make it jump over records without a word.
    """
    if (reset := options.get("auto.offset.reset", "error")) != "error":
        raise SettingsError(f"auto.offset.reset={reset}: must be error, or a lost position is passed over in silence")
    return Consumer(
        client_config(kafka)
        | {
            "group.id": READER_GROUP,
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
        | options
    )


def watermarks(
    kafka: KafkaSettings, topic: str, partitions: Sequence[int], timeout_seconds: float
) -> dict[int, tuple[int, int]]:
    """The low and high watermark by partition, asked for by a read_uncommitted client.

    For a read_committed client "high" would be the last stable offset. Raises KafkaUnavailable.
    """
    reader = plain_reader(kafka, isolation="read_uncommitted")
    try:
        return {number: _watermarks_of(reader, TopicPartition(topic, number), timeout_seconds) for number in partitions}
    except KafkaException as failure:
        raise KafkaUnavailable(f"watermarks of {topic}: {words(failure.args[0])}") from failure
    finally:
        reader.close()


def _watermarks_of(reader: Consumer, partition: TopicPartition, timeout_seconds: float) -> tuple[int, int]:
    """Asks again while the partition has no leader, as it has none just after a topic was made or a broker started."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            return reader.get_watermark_offsets(partition, timeout=timeout_seconds, cached=False)
        except KafkaException as failure:
            leaderless = failure.args[0].code() in (
                KafkaError.NOT_LEADER_FOR_PARTITION,
                KafkaError.LEADER_NOT_AVAILABLE,
            )
            if not leaderless or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def read_to_end(
    kafka: KafkaSettings, topic: str, *, timeout_seconds: float, isolation: str = "read_committed"
) -> list[Message]:
    """Every record of a topic from its low watermarks to the high watermarks of this moment.

    The end is the high watermark and not the first end-of-partition: an open transaction hides what lies behind it.
    Raises KafkaUnavailable when the end is not reached in time.
    """
    known = admin(kafka).list_topics(topic, timeout=timeout_seconds).topics[topic]
    if known.error is not None:
        raise KafkaUnavailable(f"topic {topic}: {words(known.error)}; create it with `tallyhook topics apply`")
    ends = watermarks(kafka, topic, sorted(known.partitions), timeout_seconds)
    missing = {number: high for number, (low, high) in ends.items() if high > low}
    found: list[Message] = []
    if not missing:
        return found
    reader = plain_reader(kafka, isolation=isolation)
    try:
        # By number: asking for "the beginning" costs half a second of look-up.
        reader.assign([TopicPartition(topic, number, ends[number][0]) for number in missing])
        deadline = time.monotonic() + timeout_seconds
        while missing:
            for message in reader.consume(1000, 0.1):
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001  the code has no public name
                    raise KafkaUnavailable(f"reading {topic}: {words(error)}")
                elif (message.offset() or 0) >= missing.get(message.partition() or 0, 1 << 62):
                    del missing[message.partition() or 0]
            if missing and time.monotonic() > deadline:
                raise KafkaUnavailable(
                    f"the end of {topic} was not reached in {timeout_seconds:g} s:"
                    f" a transaction may still be open on {sorted(missing)}"
                )
    finally:
        reader.close()
    return found


def headers_of(message: Message) -> list[tuple[str, bytes | str | None]]:
    """A record's headers in their order, repeated ones included; empty where it has none."""
    headers = message.headers() or []
    return list(headers.items()) if isinstance(headers, dict) else list(headers)
