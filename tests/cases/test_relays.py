"""A case from the life of webhook receivers: a relay that dies between sending and committing."""

import time

import pytest

from tests.integration.relay.conftest import StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.freezing import freeze_before_the_commit
from tests.integration.relay.outbox_rows import OutboxWriter
from tests.integration.relay.waiting import eventually

EFFECTS_SENT = 50
TAKEOVER_SECONDS = 15.0


def count(seqs: dict[int, list[int]]) -> int:
    """How many rows these are."""
    return sum(map(len, seqs.values()))


@pytest.mark.case(22)
@pytest.mark.cases
def test_case_22_a_relay_killed_before_its_commit(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader
) -> None:
    """kill -9 with 50 effects in Kafka and none committed: 15 s later each is there once, and nothing is left open."""
    first = start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="10")
    first.await_active()
    standby = start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="10")
    eventually("the other one stands by", lambda: "standing by" in standby.log())
    freeze_before_the_commit(first, writer, reader, EFFECTS_SENT)
    assert count(writer.expected()) - count(reader.seqs()) == EFFECTS_SENT

    first.kill()
    killed_at = time.monotonic()
    eventually(
        "the 50 are there once and no transaction is open",
        lambda: reader.has(writer.expected()) and reader.open() == 0,
        TAKEOVER_SECONDS,
    )
    assert time.monotonic() - killed_at < TAKEOVER_SECONDS
    assert reader.seqs() == writer.expected()
    assert standby.stop() == 0
