"""Stops a relay's process where it hurts: its records are written, and their transaction is not committed."""

import time
from functools import partial

from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import OutboxWriter
from tests.integration.relay.relay_process import RelayProcess
from tests.integration.relay.waiting import eventually

ATTEMPTS = 10
STEP_SECONDS = 0.001
STEPPING_SECONDS = 5.0


def freeze_within_a_transaction(relay: RelayProcess, writer: OutboxWriter, reader: EffectReader) -> int:
    """Stops it at a moment when many records are written and not committed; gives how many."""
    for _ in range(20):
        enough = reader.written() + 50
        writer.add(2_500, notify=True)
        eventually("it writes", partial(_has_written, reader, enough), every_seconds=0.0)
        relay.freeze()
        behind = reader.open()
        if behind:
            assert reader.seqs() != writer.expected()
            return behind
        relay.thaw()
        eventually("it sends what it was held at", lambda: reader.has(writer.expected()))
    raise AssertionError("never caught in the middle of a transaction")


def freeze_before_the_commit(relay: RelayProcess, writer: OutboxWriter, reader: EffectReader, rows: int) -> None:
    """Stops it when exactly so many records, those of the newest rows, are written and not committed.

    That lasts a few milliseconds, so the process is let go for one at a time: within it the answer to its records does
    not come back, and the request that commits cannot follow.

    Args:
        rows: an even number; half of them go to partition 0, half to partition 1.
    """
    for _ in range(ATTEMPTS):
        relay.freeze()
        before = reader.written()
        writer.add(rows // 2, partitions=[0, 1], notify=True)
        if _step_until_open(relay, reader, before, rows):
            return
        relay.thaw()
        eventually("it sends what it was held at", lambda: reader.has(writer.expected()))
    raise AssertionError(f"never caught with exactly {rows} records open")


def _step_until_open(relay: RelayProcess, reader: EffectReader, before: int, rows: int) -> bool:
    """Whether so many records were seen open, before they were committed or the lease became short."""
    deadline = time.monotonic() + STEPPING_SECONDS
    while time.monotonic() < deadline:
        relay.thaw()
        time.sleep(STEP_SECONDS)  # not a wait for anything: the relay's share of time
        relay.freeze()
        behind = reader.open()
        if behind == rows:
            # A commit that was on its way has arrived by the second look.
            return reader.open() == rows
        if not behind and reader.written() > before:
            return False
    return False


def _has_written(reader: EffectReader, enough: int) -> bool:
    return reader.written() > enough
