"""Looks at a rewound outbox, and puts it right where everything that was sent is there again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

import psycopg

from schemas.topics import TopicNames
from sinks import migrations
from sinks.relay import progress, topics
from sinks.relay.position import Position
from tallyhook import logs
from tallyhook.errors import TallyhookError
from tallyhook.operations.rewound.balances import Announcements, announcements
from tallyhook.operations.rewound.matching import Matched, match
from tallyhook.operations.rewound.outbox import ROWS_MAX, Outbox, TooMuchLost, in_words
from tallyhook.operations.rewound.sent import Bounds, SentEffect, bounds, effect_topics, read_tail
from tallyhook.postgres import Connection
from tallyhook.settings import Settings

TAIL_RECORDS = 2_000
"""How far before the ends of the effect topics the search begins; it widens eightfold."""

PATIENCE_SECONDS = 30.0
"""For an end of a topic, beyond the time after which the broker ends an abandoned transaction."""

_log = logs.logger(__name__)


class NotTheSame(TallyhookError):
    """What was made again is not what was sent, or not all of it yet; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, and done where it was asked for.

    Args:
        rewound: each partition that lost what was sent; empty where nothing is to be mended.
        balances: what entries announce otherwise; empty while something is missing or differs.
        waits: why an effect is missing, by dedupe key.
        mended: whether the outbox was put right.
    """

    rewound: Sequence[Matched] = ()
    balances: Announcements = field(default_factory=Announcements)
    waits: Mapping[str, str] = field(default_factory=dict)
    mended: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the outbox can be put right, or is right."""
        return all(one.agrees for one in self.rewound)


class OutboxRecovery:
    """One look, or one mending, over a connection that nobody else uses.

    Args:
        connection: autocommit; its role may change `pg_outbox` where `mend` is called.

    Raises:
        SchemaMismatch, TopicMismatch: schema or topics are not those that were installed.
    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        migrations.check(connection, settings.installation)
        installation = settings.installation
        self._settings = settings
        self._names = TopicNames(installation.topic_prefix)
        self._topics = effect_topics(self._names)
        self._patience = settings.relay.transaction_timeout_seconds + PATIENCE_SECONDS
        self._outbox = Outbox(connection, installation.schema_name, installation.lock_key("outbox-recovery"))

    def look(self) -> Report:
        """Holds the outbox against the topics and changes nothing.

        Raises:
            KafkaUnavailable, DatabaseUnavailable: ask again.
            PositionLost, NotOurs: somebody other than the relay wrote to its topics.
            TooMuchLost: more was lost than the topics or this command can hold.
            RelayWorks: balance entries of a relay that works would have to change.
        """
        with self._transaction(mend=False):
            return self._plan(self._progress())

    def mend(self) -> Report:
        """Puts the outbox right in one transaction; the relay goes on by itself within seconds.

        Raises:
            NotTheSame: something is missing or differs; `look` tells what.
            Others: as `look`.
        """
        with self._transaction(mend=True):
            known = self._progress()
            report = self._plan(known)
            if not report.rewound:
                return report
            if not report.agrees:
                raise NotTheSame(
                    "what was sent is not in the outbox again as it was: nothing was changed. `tallyhook relay recover`"
                    " without --confirm names each effect"
                )
            for one in report.rewound:
                self._outbox.renumber(one.partition, one.new_numbers())
                self._outbox.identify(one.partition, one.sent_seq, known[one.partition].id)
            self._outbox.announce(report.balances.as_sent)
            self._outbox.announce(report.balances.anew)
            if self._progress() != known:
                raise NotTheSame("a relay sent something meanwhile: nothing was changed; look again")
        for one in report.rewound:
            _log.warning(
                "rewound outbox put right",
                partition=one.partition,
                kept_seq=one.kept_seq,
                sent_seq=one.sent_seq,
                renumbered=len(one.new_numbers()),
            )
        return Report(report.rewound, report.balances, {}, mended=True)

    @contextmanager
    def _transaction(self, *, mend: bool) -> Iterator[None]:
        done = False
        try:
            self._outbox.begin(mend=mend)
            try:
                yield
                done = mend
            finally:
                self._outbox.end(commit=done)
        except psycopg.Error as failure:
            raise in_words(failure, self._settings.installation.schema_name) from failure

    def _progress(self) -> dict[int, Position]:
        partitions = range(self._settings.installation.partitions)
        topic = self._names.relay_progress
        return progress.read(self._settings.kafka, topic, partitions, timeout_seconds=self._patience)

    def _plan(self, known: Mapping[int, Position]) -> Report:
        topics.check(self._settings, self._outbox.installed_topics(), timeout_seconds=self._patience)
        ids = self._outbox.row_ids({partition: position.seq for partition, position in known.items()})
        lost = [partition for partition, position in sorted(known.items()) if ids.get(partition) != position.id]
        held = bounds(self._settings.kafka, self._topics, lost, self._patience) if lost else {}
        matched, since = [], None
        for partition in lost:
            one, made_at = self._match(partition, known[partition].seq, held)
            matched.append(one)
            since = made_at if since is None or (made_at is not None and made_at < since) else since
        if all(one.agrees for one in matched):
            return Report(matched, announcements(self._outbox, matched, known, since))
        return Report(matched, waits=self._why_missing([effect for one in matched for effect in one.missing]))

    def _match(self, partition: int, sent_seq: int, held: Mapping[str, Bounds]) -> tuple[Matched, datetime | None]:
        sent, kept_seq = self._sent_behind_what_was_kept(partition, sent_seq, held)
        rows, made_at = self._outbox.behind(partition, kept_seq)
        return match(partition, kept_seq, sent_seq, sent, rows), made_at

    def _sent_behind_what_was_kept(
        self, partition: int, sent_seq: int, held: Mapping[str, Bounds]
    ) -> tuple[dict[int, SentEffect], int]:
        """What was sent and lost, by number, and the last row that the database kept."""
        records = TAIL_RECORDS
        while True:
            sent, whole = read_tail(self._settings.kafka, self._topics, held, partition, records, self._patience)
            if sent and max(sent) > sent_seq:
                raise NotTheSame(
                    f"partition {partition} has more than the relay's progress says ({max(sent)}, {sent_seq}): a relay"
                    " sends now, or the progress topic lost records. Nothing was changed; look again"
                )
            first = sent_seq
            while first - 1 in sent:
                first -= 1
            if sent_seq in sent:
                kept = self._outbox.last_kept(partition, sent, first, sent_seq)
                if kept is None and whole and first == 0:
                    kept = -1
                if kept is not None:
                    return sent, kept
            if whole:
                raise TooMuchLost(
                    f"the effect topics begin at row {first} of outbox partition {partition}, and the database kept"
                    " nothing from there on: what was sent before is not known any more. Restore a newer copy"
                )
            if len(sent) > ROWS_MAX:
                raise TooMuchLost(
                    f"the database kept none of the last {len(sent)} rows that were sent of outbox partition"
                    f" {partition}; at most {ROWS_MAX} can be held against it. Restore a newer copy"
                )
            records *= 8

    def _why_missing(self, missing: Sequence[SentEffect]) -> dict[str, str]:
        found = self._outbox.events(sorted({effect.causation_id for effect in missing}))
        return {effect.dedupe_key: _in_words(*found[effect.causation_id]) for effect in missing}


def _in_words(known: bool, waits: str | None, aside: bool) -> str:
    if aside:
        return "its event was set aside: tallyhook quarantine list"
    if waits == "correlation":
        return "its event waits for the deposit's correlation, which was lost with the database: insert it again"
    if waits is not None:
        return f"its event waits ({waits}): tallyhook parked"
    if known:
        return "its event was applied again and did not give it"
    return "its event was not applied again yet: wait for the sink, see tallyhook doctor"
