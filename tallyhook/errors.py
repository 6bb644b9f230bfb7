"""The one tree of errors: a message says what happened, to which id, and what to do next."""


class TallyhookError(Exception):
    """Anything that Tallyhook itself raises; `exit_code` is what the command line ends with."""

    exit_code = 1


class SettingsError(TallyhookError):
    """A setting is missing or out of bounds."""

    exit_code = 2


class UsageError(TallyhookError):
    """A command was called in a way that makes no sense."""

    exit_code = 2


class LocalStackError(TallyhookError):
    """A part of the local stack could not be downloaded, started or stopped."""


class StateDirBusy(LocalStackError):
    """Another process holds the state directory."""


class KafkaUnavailable(TallyhookError):
    """Kafka did not answer within the bound."""


class DatabaseUnavailable(TallyhookError):
    """PostgreSQL did not answer within the bound."""


class TopicMismatch(TallyhookError):
    """A topic is missing, or has another id, partition count or configuration than the installation recorded."""


class PositionLost(TallyhookError):
    """A stored position lies outside of what its topic still holds; going on would skip or repeat silently."""


class SchemaMismatch(TallyhookError):
    """The database schema is older or newer than this program can work with."""


class FenceLost(TallyhookError):
    """Another worker owns a partition of this batch: nothing of it was written."""


class LeaseLost(TallyhookError):
    """Another relay owns this shard: this one must end."""


class ProducerBroken(TallyhookError):
    """Kafka fenced the transactional producer or gave it up: the process must be replaced."""


class OutboxRewound(TallyhookError):
    """The outbox no longer holds a row that was already sent: the database lost commits."""


class OutboxGap(TallyhookError):
    """A number is missing in a partition's outbox: a row was deleted before it was sent."""


class WorkerStalled(TallyhookError):
    """Work waits, the dependencies answer, and nothing moves: the process must be replaced."""
