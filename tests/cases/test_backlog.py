"""A case from the life of webhook receivers: a relay that comes back to a very long outbox."""

import psutil
import pytest

from tests.integration.relay.conftest import PARTITIONS, StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.outbox_rows import OutboxWriter
from tests.integration.relay.waiting import eventually

ROWS = 200_000
MEGABYTE = 1_000_000
MEMORY_BYTES_MAX = 300 * MEGABYTE
DRAIN_SECONDS = 120.0
PAYLOAD_FILLER_CHARS = 300


@pytest.mark.case(23)
@pytest.mark.cases
@pytest.mark.timeout(400)
def test_case_23_a_long_backlog(start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader) -> None:
    """200,000 unsent rows: one process sends each once and in order, in bounded memory, and its backlog is 0 again."""
    writer.add(ROWS // PARTITIONS, filler=PAYLOAD_FILLER_CHARS)
    relay = start_relay()
    pid = relay.pid
    peak_bytes, longest_backlog = 0, 0.0

    def drained() -> bool:
        nonlocal peak_bytes, longest_backlog
        assert relay.exit_code is None, relay.log()
        peak_bytes = max(peak_bytes, psutil.Process(pid).memory_info().rss)
        longest_backlog = max(longest_backlog, relay.metric("tallyhook_relay_backlog_rows") or 0.0)
        return relay.metric("tallyhook_relay_sent_total") == ROWS

    eventually("the backlog is sent", drained, DRAIN_SECONDS, every_seconds=0.1)
    eventually("the backlog's gauge is 0", lambda: relay.metric("tallyhook_relay_backlog_rows") == 0)
    assert longest_backlog > ROWS / 2
    assert peak_bytes < MEMORY_BYTES_MAX, f"{peak_bytes / MEGABYTE:.0f} MB"
    assert relay.status("/readyz") == (200, [])
    assert not relay.metric("tallyhook_relay_aborted_total")
    assert reader.seqs() == writer.expected()
    assert relay.stop() == 0
