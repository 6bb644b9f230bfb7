"""What the doctor found: data, one `Finding` a danger."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["breaks", "warning"]
Promise = Literal["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8"]

FindingId = Literal[
    "topic_missing",
    "topic_partitions",
    "topic_unrecorded",
    "topic_replaced",
    "retention_short",
    "retention_low",
    "retention_bytes",
    "compacted",
    "not_compacted",
    "replication_low",
    "insync_replicas",
    "unclean_election",
    "record_limit",
    "payload_limit",
    "topic_config_untold",
    "broker_creates_topics",
    "group_protocol",
    "session_timeout",
    "sink_position",
    "sink_idle",
    "stream_position",
    "relay_progress",
    "relay_shards",
    "relay_idle",
    "sequences_unkept",
    "schema_revision",
    "schema_newer",
    "schema_pending",
    "schema_shared",
    "table_missing",
    "privilege_missing",
    "server_version",
    "server_encoding",
    "server_read_only",
    "fsync_off",
    "synchronous_commit",
    "synchronous_standby",
    "connections_scarce",
    "clock_skew",
    "keys_unusable",
    "keys_unset",
    "keys_none_valid",
    "key_ending",
    "key_overlap",
    "merchant_any",
    "changelog_replication",
    "setting_unknown",
]


@dataclass(frozen=True, slots=True)
class Finding:
    """One danger.

    Args:
        id: which kind of danger; stable, for programs.
        severity: `breaks` when a promise does not hold with it, `warning` when it may not hold one day.
        promises: those that are endangered; P8 (comes back by itself) also where a process refuses to start.
        subject: what it is about: a topic, a partition, the database, a key.
        found: what is there.
        wanted: what must be there.
        endangers: what will happen.
        repair: the command or the change that ends it.
    """

    id: FindingId
    severity: Severity
    promises: tuple[Promise, ...]
    subject: str
    found: str
    wanted: str
    endangers: str
    repair: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a visit found.

    Args:
        findings: those that break a promise first.
        unreachable: what did not answer, so that it was not looked at; one sentence each.
        unseen: what was left out because nothing is set for it; one sentence each.
    """

    findings: Sequence[Finding]
    unreachable: Sequence[str]
    unseen: Sequence[str]

    @property
    def breaking(self) -> Sequence[Finding]:
        """The findings that break a promise."""
        return [finding for finding in self.findings if finding.severity == "breaks"]

    @property
    def exit_code(self) -> int:
        """0: nothing breaks a promise; 1: something does; 2: something did not answer, so that the rest is open."""
        if self.unreachable:
            return 2
        return 1 if self.breaking else 0

    def as_json(self) -> dict[str, Any]:
        """As `tallyhook doctor --json` prints it."""
        return {
            "healthy": self.exit_code == 0,
            "findings": [asdict(finding) for finding in self.findings],
            "unreachable": list(self.unreachable),
            "unseen": list(self.unseen),
        }
