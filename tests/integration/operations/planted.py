"""Misconfigurations that a test plants in an installation, and what the doctor says of it."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import aiokafka
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import OffsetAndMetadata
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from streams.positions import commit_note
from tallyhook.gateway.signing import SigningKey
from tallyhook.kafka import admin
from tests.integration.operations.operated import MERCHANT, Operated
from tests.running import await_true

PATIENCE_SECONDS = 20.0
Found = set[tuple[str, str]]


class Planted:
    """One installation with the settings of a door, and the doctor for it."""

    def __init__(self, shop: Operated) -> None:
        self.shop = shop
        self._client = admin(shop.settings.kafka)
        shop.environment |= {
            "TALLYHOOK_INGRESS_PUBLIC_KEYS": f"k1={SigningKey.generate().public_text()}",
            "TALLYHOOK_INGRESS_MERCHANT_ID": MERCHANT,
        }

    def report(self, *, code: int, **more: str) -> dict[str, Any]:
        """What `tallyhook doctor --json` prints; its exit code must be the expected one."""
        report: dict[str, Any] = self.shop.json("doctor", code=code, **more)
        return report

    def findings(self, *, code: int, **more: str) -> list[dict[str, Any]]:
        """Its findings."""
        found: list[dict[str, Any]] = self.report(code=code, **more)["findings"]
        return found

    def ids(self, *, code: int, **more: str) -> set[str]:
        """The ids of its findings."""
        return {finding["id"] for finding in self.findings(code=code, **more)}

    def one(self, wanted: str, *, code: int = 1, **more: str) -> dict[str, Any]:
        """The only finding of an id."""
        (found,) = [finding for finding in self.findings(code=code, **more) if finding["id"] == wanted]
        return found

    def configure(self, topic: str, **values: str) -> None:
        """Sets configurations of a topic, with _ for the dots, and waits until the broker tells them."""
        wanted = {name.replace("_", "."): value for name, value in values.items()}
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in wanted.items()
        ]
        change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for future in self._client.incremental_alter_configs([change]).values():
            future.result(PATIENCE_SECONDS)

        def told() -> bool:
            asked = ConfigResource(ResourceType.TOPIC, topic)
            answer = self._client.describe_configs([asked])[asked].result(PATIENCE_SECONDS)
            return all(answer[name].value == value for name, value in wanted.items())

        await_true(told, PATIENCE_SECONDS, f"{topic} to have {wanted}")

    def grow(self, topic: str, partitions: int) -> None:
        """Gives a topic more partitions."""
        self._client.create_partitions([NewPartitions(topic, partitions)])[topic].result(PATIENCE_SECONDS)
        await_true(
            lambda: (
                len(self._client.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions) == partitions
            ),
            PATIENCE_SECONDS,
            f"{topic} to have {partitions} partitions",
        )

    def delete(self, topic: str) -> None:
        """Deletes a topic and waits until the broker has forgotten it."""
        self._client.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
        await_true(
            lambda: topic not in self._client.list_topics(timeout=PATIENCE_SECONDS).topics,
            PATIENCE_SECONDS,
            f"{topic} to be gone",
        )

    def cut(self, topic: str, partition: int, before: int) -> None:
        """Deletes the records below an offset."""
        for future in self._client.delete_records([TopicPartition(topic, partition, before)]).values():
            future.result(PATIENCE_SECONDS)

    def fill(self, topic: str, records: int) -> int:
        """Writes records of one key; gives their partition."""
        placed: list[int] = []
        for _ in range(records):
            self.shop.client.produce(
                topic, key="dep_1", value=b"{}", on_delivery=lambda _, message: placed.append(message.partition() or 0)
            )
        assert self.shop.client.flush(PATIENCE_SECONDS) == 0
        (partition,) = set(placed)
        return partition

    def topic_id(self, topic: str) -> str:
        """As `topics apply` recorded it."""
        ((found,),) = self.shop.rows("SELECT topic_id FROM installed_topics WHERE topic = %s", topic)
        return str(found)

    def applied_to(self, topic: str, partition: int, next_offset: int, topic_id: str | None = None) -> None:
        """A position as the sink stores it."""
        self.shop.connection.execute(
            "INSERT INTO sink_offsets (topic, topic_id, partition, next_offset) VALUES (%s, %s, %s, %s)"
            " ON CONFLICT (topic, partition) DO UPDATE SET next_offset = EXCLUDED.next_offset,"
            " topic_id = EXCLUDED.topic_id",
            (topic, topic_id or self.topic_id(topic), partition, next_offset),
        )

    def commit(self, topic: str, partition: int, offset: int, topic_id: str) -> None:
        """A position of the stream's group with the note that the stream writes beside it."""
        asyncio.run(self._commit(topic, partition, offset, commit_note(topic_id)))

    async def _commit(self, topic: str, partition: int, offset: int, note: str) -> None:
        group = self.shop.settings.installation.group_id("streams")
        member = AIOKafkaConsumer(bootstrap_servers=self.shop.settings.kafka.bootstrap, group_id=group)
        place = aiokafka.TopicPartition(topic, partition)
        member.assign([place])
        await member.start()
        try:
            await member.commit({place: OffsetAndMetadata(offset, note)})
        finally:
            await member.stop()

    @contextmanager
    def role(self, *options: str) -> Iterator[str]:
        """A database role that may only read the installation's tables; the URL with which it connects."""
        name = f"r_{self.shop.settings.installation.schema_name}"
        schema = self.shop.settings.installation.schema_name
        run = self.shop.connection.execute
        run(f"CREATE ROLE {name} LOGIN PASSWORD 'reader'".encode())
        run(f"GRANT USAGE ON SCHEMA {schema} TO {name}".encode())
        run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}".encode())
        for option in options:
            run(f"ALTER ROLE {name} SET {option}".encode())
        info = self.shop.connection.info
        try:
            yield f"postgresql://{name}:reader@{info.host}:{info.port}/{info.dbname}"
        finally:
            run(f"DROP OWNED BY {name}".encode())
            run(f"DROP ROLE {name}".encode())


def replicated(planted: Planted) -> Planted:
    """The same topics and tables under settings that demand replicas."""
    shop = planted.shop
    installation = shop.settings.installation.model_copy(update={"durability": "replicated"})
    return Planted(replace(shop, settings=replace(shop.settings, installation=installation)))
