"""A running ingress process together with the topics that it fills."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Message

from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tallyhook.kafka import read_to_end
from tallyhook.settings import Installation, KafkaSettings
from tests.integration.ingress.process import IngressProcess, running

MERCHANT = "mer_1"
READ_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class DoorUnderTest:
    """One process, the key whose signatures it takes, and its topics."""

    process: IngressProcess
    key: SigningKey
    kafka: KafkaSettings
    installation: Installation

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        return self.process.port

    @property
    def names(self) -> TopicNames:
        """The topics of its own mode."""
        return TopicNames(self.installation.topic_prefix)

    def records(self, topic: str) -> list[Message]:
        """Every record of a topic."""
        return read_to_end(self.kafka, topic, timeout_seconds=READ_SECONDS)

    def events(self) -> list[Message]:
        """What went on its way."""
        return self.records(self.names.events)

    def dead_letters(self) -> list[Message]:
        """What was authentic and is no event of this installation."""
        return self.records(self.names.dead_letters)


def errors_of_ours(process: IngressProcess) -> list[dict[str, object]]:
    """Log records that only a fault of the product writes: tracebacks, errors, lines that are no record."""
    return [
        line
        for line in process.log_lines()
        if "exception" in line
        or "Traceback" in str(line)
        or line.get("level") in ("error", "critical")
        or line.get("event") in ("not JSON", "not an object")
    ]


@contextmanager
def open_door(bootstrap: str, installation: Installation, key: SigningKey, **settings: str) -> Iterator[DoorUnderTest]:
    """A ready process on existing topics; its log must be clean at the end, whatever was sent to it."""
    environment = {
        "TALLYHOOK_KAFKA_BOOTSTRAP": bootstrap,
        "TALLYHOOK_TOPIC_PREFIX": installation.topic_prefix,
        "TALLYHOOK_SCHEMA": installation.schema_name,
        "TALLYHOOK_INGRESS_PUBLIC_KEYS": f"k1={key.public_text()}",
        "TALLYHOOK_INGRESS_MERCHANT_ID": MERCHANT,
        "TALLYHOOK_INGRESS_ANNOUNCE_SECONDS": "0",
    }
    with running(environment | settings, key) as process:
        yield DoorUnderTest(process, key, KafkaSettings(bootstrap=bootstrap), installation)
        assert process.process.poll() is None, process.log_lines()
        assert errors_of_ours(process) == []
