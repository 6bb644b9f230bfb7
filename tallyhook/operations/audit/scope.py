"""An audit of a part: what is asked for since some moment, and the names of all that is thereby not looked at."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from tallyhook.operations.audit import topic_ranges
from tallyhook.operations.audit.findings import Check, CheckName, Checks
from tallyhook.operations.audit.snapshot import Snapshot
from tallyhook.operations.audit.topic_ranges import Range
from tallyhook.settings import KafkaSettings

CLOCKS_APART = timedelta(minutes=10)
"""Topics that are written after something else are read from so much earlier: their writers' clocks may differ."""

_WALKED: Mapping[CheckName, tuple[str, ...]] = {
    "aggregates": ("deposits", "withdrawals"),
    "flags": ("flags",),
    "chunks": ("fills", "reversals"),
    "transactions": ("transactions",),
    "verdicts": ("inbox",),
    "ledger": ("entries",),
    "outbox": ("outbox",),
}
"""Which walks over all objects a check rests on."""


def shown(moment: datetime) -> str:
    """A moment for a person, to the second."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def newer(
    kafka: KafkaSettings, topic: str, ranges: Mapping[int, Range], since: datetime | None, check: Check
) -> dict[int, Range]:
    """The part of the ranges that was written since then, and names the rest; all of it where nothing is left out.

    Raises KafkaUnavailable.
    """
    if since is None:
        return dict(ranges)
    found = topic_ranges.since(kafka, topic, ranges, since)
    skipped = sum(ranges[number].length - wanted.length for number, wanted in found.items())
    check.leave_out(f"records of {topic} from before {shown(since)}, left out by --since", skipped)
    return found


def name_untouched(snapshot: Snapshot, checks: Checks) -> None:
    """Names the rows of the objects that were left out; to be called after the walks over the objects."""
    if snapshot.since is None:
        return
    what = (
        f"rows of objects of which nothing was received or changed since {shown(snapshot.since)}, left out by --since"
    )
    there = snapshot.counts("count_rows")
    for name, walks in _WALKED.items():
        checks[name].leave_out(what, sum(there[walk] - snapshot.walked[walk] for walk in walks))
    followed = int(snapshot.rows("count_followed")[0][0])
    checks["ledger"].leave_out(
        "users whose balances step by step are not followed, since none of their deposits was asked for",
        int(snapshot.rows("count_users")[0][0]) - followed,
    )


def name_older_rows(snapshot: Snapshot, check: Check) -> None:
    """Names the outbox rows of which it was not asked whether they are in their topics."""
    if snapshot.since is not None:
        check.leave_out(
            f"outbox rows from before {shown(snapshot.since)}, left out by --since: neither whether they are in their"
            " topics nor whether a later record repeats them",
            snapshot.counts("count_rows")["outbox"] - snapshot.walked["sent_rows"],
        )
