"""Two relays of one shard: one works, one stands by; whatever ends the first, nothing is sent twice or left out."""

import random
import time

import pytest

from tests.integration.relay.conftest import StartRelay
from tests.integration.relay.effect_reader import EffectReader
from tests.integration.relay.freezing import freeze_within_a_transaction
from tests.integration.relay.outbox_rows import Load, OutboxWriter
from tests.integration.relay.relay_process import RelayProcess
from tests.integration.relay.waiting import eventually

TAKEOVER_SECONDS = 15.0


def test_killed_before_its_commit_a_standby_sends_the_same_rows_once(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader
) -> None:
    """Killed with 50 effects and more written, none committed: 15 s later all are there once, nothing is left open."""
    first = start_relay(TALLYHOOK_RELAY_TRANSACTION_ROWS="10000", TALLYHOOK_RELAY_LEASE_SECONDS="10")
    first.await_active()
    standby = start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="10")
    eventually("the other one stands by", lambda: "standing by" in standby.log())
    written = freeze_within_a_transaction(first, writer, reader)
    assert written >= 50
    first.kill()
    killed_at = time.monotonic()
    eventually("every row is there once", lambda: reader.has(writer.expected()), TAKEOVER_SECONDS)
    assert time.monotonic() - killed_at < TAKEOVER_SECONDS
    eventually("no transaction is open", lambda: reader.open() == 0, seconds=2)
    assert reader.seqs() == writer.expected()
    assert standby.stop() == 0


def test_a_standby_waits_without_fencing_and_follows_at_once_after_a_stop(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader
) -> None:
    """A second relay disturbs nobody while the first works, and does not wait for the lease of one that was stopped."""
    first = start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="60")
    first.await_active()
    second = start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="60")
    eventually("the second stands by", lambda: "standing by" in second.log())
    with Load(writer):
        eventually("the first works on", lambda: (first.metric("tallyhook_relay_sent_total") or 0) > 200)
        assert not second.active()
        assert second.status("/readyz") == (200, [])
        assert first.metric("tallyhook_relay_aborted_total") == 0
        assert first.stop() == 0
        second.await_active(seconds=5)
        eventually("the second works", lambda: (second.metric("tallyhook_relay_sent_total") or 0) > 200)
    eventually("everything is sent", lambda: reader.has(writer.expected()))
    assert second.stop() == 0


@pytest.mark.parametrize("where", ["between transactions", "within a transaction"])
def test_a_relay_that_froze_finds_itself_replaced_and_ends(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, where: str
) -> None:
    """Thawed after a standby has taken over, the older ends with 70, and nothing it held is sent again."""
    older = start_relay(TALLYHOOK_RELAY_TRANSACTION_ROWS="10000")
    older.await_active()
    writer.add(10)
    eventually("the older has sent something", lambda: older.metric("tallyhook_relay_sent_total") == 40)
    younger = start_relay()
    eventually("the younger stands by", lambda: "standing by" in younger.log())
    if where == "within a transaction":
        freeze_within_a_transaction(older, writer, reader)
    else:
        older.freeze()
    writer.add(100, notify=True)
    younger.await_active()
    eventually("the younger sends", lambda: reader.has(writer.expected()))
    older.thaw()
    assert older.await_exit() == 70
    assert '"critical"' in older.log().splitlines()[-1]
    writer.add(100, notify=True)
    eventually("the younger works on", lambda: reader.has(writer.expected()))
    assert younger.stop() == 0


@pytest.mark.chaos
@pytest.mark.timeout(600)
def test_killed_again_and_again_under_load(
    start_relay: StartRelay, writer: OutboxWriter, reader: EffectReader, request: pytest.FixtureRequest
) -> None:
    """After many kills of whichever relay works, every row is there once and in order."""
    kills = 15 if request.config.getoption("--chaos-long") else 10
    moments = random.Random(20)
    relays = [start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="1"), start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="1")]
    # The kills leave little time to send, and the load must not run away from it.
    with Load(writer, rows=10, pause_seconds=0.05):
        for _ in range(kills):
            working = _await_sending(relays)
            time.sleep(moments.uniform(0.0, 0.2))  # not a wait for anything: the moment of the kill is to be any
            working.kill()
            relays.remove(working)
            relays.append(start_relay(TALLYHOOK_RELAY_LEASE_SECONDS="1"))
    eventually("everything is sent", lambda: reader.has(writer.expected()), seconds=30)
    assert reader.open() == 0


def _await_sending(relays: list[RelayProcess]) -> RelayProcess:
    """Whichever of them has the lease, once it sends."""

    def found() -> RelayProcess | None:
        return next((relay for relay in relays if relay.metric("tallyhook_relay_sent_total")), None)

    working = eventually("one of the two sends", found, seconds=30)
    assert working is not None
    return working
