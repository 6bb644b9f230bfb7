"""One audit from the notes to the report; see docs/audit.md for what it proves and what it cannot."""

from collections.abc import Callable
from datetime import datetime

from tallyhook.operations.audit import marks as noting
from tallyhook.operations.audit import snapshot as snapshots
from tallyhook.operations.audit.compare import compare
from tallyhook.operations.audit.compare_withdrawals import check_crossings
from tallyhook.operations.audit.deliveries import DeliveryAudit
from tallyhook.operations.audit.effects import EffectAudit
from tallyhook.operations.audit.findings import AuditReport, Checks
from tallyhook.operations.audit.ledger import check_balances
from tallyhook.operations.audit.marks import Marks
from tallyhook.operations.audit.numbers import Kept, check_numbers
from tallyhook.operations.audit.scope import name_untouched
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.operations.audit.stored_objects import stored_objects
from tallyhook.settings import Settings

TOLD_EVENTS = 500
"""Progress is told so rarely, because telling costs more than comparing."""

Progress = Callable[[str, int, int], None]
"""Told the step, how many more records or rows are done in it, and how many there are, about (0: not known)."""


def audit(settings: Settings, progress: Progress, since: datetime | None = None) -> AuditReport:
    """Audits the installation while it runs; changes nothing.

    Args:
        since: only what was received or changed since then; the report names what is thereby left out.

    Raises KafkaUnavailable, DatabaseUnavailable, SchemaMismatch, SettingsError: then nothing is said of the promises.
    """
    progress("positions", 0, 0)
    marks = noting.note(settings)
    progress("snapshot", 0, 0)
    with snapshots.take(settings, since) as snapshot:
        return examine(settings, marks, snapshot, progress)


def examine(settings: Settings, marks: Marks, snapshot: Snapshot, progress: Progress) -> AuditReport:
    """All checks on positions that were noted and a snapshot that was taken after them; a red one stops no other."""
    checks = Checks()
    progress("numbers", 0, 0)
    kept = check_numbers(settings, snapshot, checks["arrival_numbers"], checks["outbox_numbers"])
    deliveries = DeliveryAudit(settings, marks, snapshot, checks["events"], checks["deliveries"], kept)
    progress("events and deliveries", 0, deliveries.total)
    deliveries.run(lambda done: progress("events and deliveries", done, deliveries.total))
    _compare_objects(snapshot, kept, checks, progress)
    name_untouched(snapshot, checks)
    progress("balances", 0, 0)
    check_crossings(snapshot, checks["chunks"])
    check_balances(snapshot, checks["ledger"])
    effects = EffectAudit(settings, marks, snapshot, kept, checks["effects"])
    progress("effects", 0, effects.total)
    effects.run(lambda done: progress("effects", done, effects.total))
    return AuditReport(snapshot.at, list(checks.values()), snapshot.since)


def _compare_objects(snapshot: Snapshot, kept: Kept, checks: Checks, progress: Progress) -> None:
    total, untold = int(snapshot.rows("count_events")[0][0]), 0
    progress("objects", 0, total)
    for stored in stored_objects(snapshot):
        compare(stored, kept, checks)
        untold += len(stored.events)
        if untold >= TOLD_EVENTS:
            progress("objects", untold, total)
            untold = 0
    progress("objects", untold, total)
