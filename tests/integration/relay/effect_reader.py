"""What downstream services see: committed records of the effect topics, and what is open behind them."""

from collections import defaultdict
from dataclasses import dataclass

from confluent_kafka import TopicPartition

from schemas.effects import BALANCE_ENTRY, EFFECTS
from schemas.headers import texts
from schemas.topics import TopicNames
from sinks.relay.record import topic_of
from tallyhook import kafka
from tallyhook.errors import KafkaUnavailable
from tallyhook.settings import KafkaSettings, Settings
from tests.integration.relay.outbox_rows import EFFECTS_USED


@dataclass(frozen=True, slots=True)
class Effect:
    """One record of an effect topic."""

    topic: str
    partition: int
    offset: int
    key: str
    value: bytes
    headers: dict[str, str]

    @property
    def seq(self) -> int:
        """Its number in the outbox."""
        return int(self.headers["ce_outboxseq"])


def sent(settings: KafkaSettings, names: TopicNames) -> dict[str, tuple[int, int]]:
    """Partition and outbox number of every effect by its dedupe key; fails where one came twice."""
    found: dict[str, tuple[int, int]] = {}
    for effect in (*EFFECTS, BALANCE_ENTRY):
        for message in kafka.read_to_end(settings, topic_of(names, effect), timeout_seconds=30):
            headers = texts(kafka.headers_of(message))
            key = headers["ce_id"]
            assert key not in found, f"{key} was sent twice"
            found[key] = (int(headers["ce_outboxpartition"]), int(headers["ce_outboxseq"]))
    return found


class EffectReader:
    """Reads the topics of EFFECTS_USED."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._names = TopicNames(settings.installation.topic_prefix)
        self.topics = [topic_of(self._names, effect) for effect in EFFECTS_USED]

    def committed(self) -> list[Effect]:
        """Everything a read_committed reader gets, by topic, partition and offset."""
        found = []
        for topic in self.topics:
            for message in kafka.read_to_end(self._settings.kafka, topic, timeout_seconds=30):
                partition, offset = message.partition(), message.offset()
                key, value, headers = message.key(), message.value(), message.headers()
                assert partition is not None
                assert offset is not None
                assert isinstance(key, bytes)
                assert isinstance(value, bytes)
                assert isinstance(headers, list)
                found.append(Effect(topic, partition, offset, key.decode(), value, texts(headers)))
        return sorted(found, key=lambda effect: (effect.topic, effect.partition, effect.offset))

    def seqs(self) -> dict[int, list[int]]:
        """The seqs by partition over all topics, sorted; fails at once on a double or a topic out of order."""
        found: dict[int, list[int]] = {partition: [] for partition in range(self._settings.installation.partitions)}
        by_topic: dict[tuple[str, int], list[int]] = defaultdict(list)
        for effect in self.committed():
            assert effect.headers["ce_outboxpartition"] == str(effect.partition)
            by_topic[effect.topic, effect.partition].append(effect.seq)
            found[effect.partition].append(effect.seq)
        for (topic, partition), seqs in by_topic.items():
            assert seqs == sorted(seqs), f"{topic}, partition {partition}: not in the order of the outbox"
        for partition, seqs in found.items():
            seqs.sort()
            assert len(set(seqs)) == len(seqs), f"partition {partition}: sent twice"
        return found

    def has(self, expected: dict[int, list[int]]) -> bool:
        """Whether these seqs are there, each once; false while Kafka does not answer."""
        try:
            return self.seqs() == expected
        except KafkaUnavailable:
            return False

    def written(self) -> int:
        """Records and markers in the logs, whether committed or not."""
        partitions = range(self._settings.installation.partitions)
        ends = [kafka.watermarks(self._settings.kafka, topic, partitions, 10) for topic in self.topics]
        return sum(high - low for found in ends for low, high in found.values())

    def open(self) -> int:
        """How far the last stable offsets are behind the high watermarks: above 0 while a transaction is open."""
        stable = kafka.plain_reader(self._settings.kafka, isolation="read_committed")
        behind = 0
        try:
            for topic in self.topics:
                partitions = range(self._settings.installation.partitions)
                ends = kafka.watermarks(self._settings.kafka, topic, partitions, 10)
                for partition, (_, high) in ends.items():
                    last = stable.get_watermark_offsets(TopicPartition(topic, partition), timeout=10, cached=False)
                    behind += high - last[1]
        finally:
            stable.close()
        return behind
