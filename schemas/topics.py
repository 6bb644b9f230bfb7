"""Topics: their names below an installation's prefix, and how each must be configured."""

from collections.abc import Iterator
from dataclasses import dataclass

from schemas.effects import EFFECTS

DAY_MS = 86_400_000
REPLAY_WINDOW_MS = 92 * 3_600_000
"""So long the gateway repeats a delivery, and so long a stage may stand still before unread records go."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic.

    Args:
        name: full name.
        cleanup: Kafka's cleanup.policy.
        retention_ms: retention.ms, -1 for ever (compacted topics).
        least_retention_ms: below this, records may go before a stage has read them; 0 where no stage reads.
    """

    name: str
    cleanup: str
    retention_ms: int
    least_retention_ms: int = 0

    @property
    def config(self) -> dict[str, str]:
        """The topic's configuration as Kafka takes it.

        Records are stamped by the broker: by the clock of a process that runs eight days behind they would be past
        their retention at once, and Kafka refuses those that are an hour ahead.
        """
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(self.retention_ms),
            "message.timestamp.type": "LogAppendTime",
        }


@dataclass(frozen=True, slots=True)
class TopicNames:
    """The names of an installation's topics; `prefix` is the setting TALLYHOOK_TOPIC_PREFIX."""

    prefix: str

    @property
    def events(self) -> str:
        """Signed events as they came in."""
        return f"{self.prefix}.events"

    @property
    def state_changes(self) -> str:
        """The same events with the stream's verdict."""
        return f"{self.prefix}.state-changes"

    @property
    def deposit_correlations(self) -> str:
        """Deposit to order and user, from the merchant's own service."""
        return f"{self.prefix}.deposit-correlations"

    @property
    def balance_entries(self) -> str:
        """Credits and debits for wallets outside of this database."""
        return f"{self.prefix}.balance-entries"

    @property
    def dead_letters(self) -> str:
        """Authentic events whose envelope cannot be used."""
        return f"{self.prefix}.dead-letters"

    @property
    def relay_progress(self) -> str:
        """The last outbox row sent, by partition; internal."""
        return f"{self.prefix}.relay-progress"

    def effect(self, name: str) -> str:
        """The topic of one effect: `release_goods` -> `<prefix>.effects.release-goods`."""
        return f"{self.prefix}.effects.{name.replace('_', '-')}"

    def specs(self) -> Iterator[TopicSpec]:
        """Every topic of an installation; all have the installation's partition count."""
        yield TopicSpec(self.events, "delete", 7 * DAY_MS, REPLAY_WINDOW_MS)
        yield TopicSpec(self.state_changes, "delete", 7 * DAY_MS, REPLAY_WINDOW_MS)
        yield TopicSpec(self.deposit_correlations, "compact", -1)
        for effect in EFFECTS:
            yield TopicSpec(self.effect(effect), "delete", 14 * DAY_MS)
        yield TopicSpec(self.balance_entries, "delete", 14 * DAY_MS)
        yield TopicSpec(self.dead_letters, "delete", 45 * DAY_MS, REPLAY_WINDOW_MS)
        yield TopicSpec(self.relay_progress, "compact", -1)
