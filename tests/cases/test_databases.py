"""A case from the life of webhook receivers: a database that only reads for a while, as after a failover."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from schemas.effects import EFFECTS
from tallyhook.gateway.signing import SigningKey
from tests.cases.shop import Shop, header_of
from tests.chaos.deposits import World, expected_balances, make_world
from tests.chaos.gateway import SENDERS, Gateway
from tests.running import RunningPipeline, await_true

EVENTS, DEPOSITS, RATE_A_SECOND = 1_000, 300, 30
READ_ONLY_SECONDS = 20.0
GOING_ON_SECONDS = 10.0
DONE = "SELECT count(*) FROM pg_webhook_inbox WHERE object_id = ANY(%s) AND processed_at IS NOT NULL"
END_HALF = (
    "SELECT pg_terminate_backend(pid) FROM (SELECT pid, row_number() OVER (ORDER BY application_name, pid) AS number"
    " FROM pg_stat_activity WHERE application_name LIKE 'tallyhook-%') AS open WHERE number % 2 = 1"
)


@contextmanager
def read_only(pipeline: RunningPipeline) -> Iterator[None]:
    """Every session of the server only reads meanwhile, those that are open already too."""
    with pipeline.connect() as operator:
        operator.execute("SET default_transaction_read_only = off")
        operator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        operator.execute("SELECT pg_reload_conf()")
        try:
            yield
        finally:
            operator.execute("ALTER SYSTEM RESET default_transaction_read_only")
            operator.execute("SELECT pg_reload_conf()")


def insert_correlations(pipeline: RunningPipeline, world: World) -> None:
    """What the merchant's service wrote before the first event."""
    with pipeline.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {pipeline.ready['schema']}.pg_deposit_correlations"
            " (pg_deposit_id, merchant_reference, our_order_id, our_user_id) VALUES (%s, %s, %s, %s)",
            [(deposit, *names) for deposit, names in world.correlations.items()],
        )


@pytest.mark.case(20)
@pytest.mark.cases
@pytest.mark.timeout(400)
def test_case_20_a_database_that_only_reads(shop: Shop) -> None:
    """Read-only for 20 s under load, half of the connections ended: nothing is set aside, each event counts once."""
    world = make_world(20, EVENTS, DEPOSITS)
    deposits = list(world.correlations)
    insert_correlations(shop.pipeline, world)
    ready = shop.pipeline.ready
    gateway = Gateway(urlsplit(ready["ingress_url"]).netloc, SigningKey.from_text(ready["signing_key"]), RATE_A_SECOND)
    gateway.start(world.deliveries)
    await_true(lambda: shop.rows(DONE, deposits)[0][0] >= 100, 60, "100 processed events")

    with read_only(shop.pipeline):
        ends_at = time.monotonic() + READ_ONLY_SECONDS
        shop.await_rows([("on",)], "SHOW default_transaction_read_only")
        assert len(shop.rows(END_HALF)) >= 2
        await_true(lambda: not shop.pipeline.answers("sink"), 10, "the sink to say that it cannot write")
        before, sent = shop.rows(DONE, deposits), gateway.sent
        time.sleep(max(0.0, ends_at - time.monotonic()))  # the length of the outage is the case
        assert shop.rows(DONE, deposits) == before
        assert gateway.sent >= sent + 100
        assert shop.pipeline.answers("ingress")
    _goes_on(shop, world, gateway)

    assert gateway.sent < len(world.deliveries), "the posting is to go on all the while"
    gateway.join(120)
    assert gateway.answers == {200: len(world.deliveries)}
    await_true(lambda: shop.rows(DONE, deposits) == [(len(world.events),)], 60, "every event processed")
    assert shop.pipeline.ready["pids"] == ready["pids"]
    _each_once(shop, world)


def _goes_on(shop: Shop, world: World, gateway: Gateway) -> None:
    """Within ten seconds what was posted meanwhile is processed, its effects are sent, and all are ready."""
    began = time.monotonic()
    # As many as there are senders may still be on their way.
    waiting = {event.id for event in world.deliveries[: gateway.sent - SENDERS]}
    inbox = "SELECT count(*) FROM pg_webhook_inbox WHERE event_id = ANY(%s) AND processed_at IS NOT NULL"
    await_true(
        lambda: shop.rows(inbox, list(waiting)) == [(len(waiting),)], GOING_ON_SECONDS, "what waited to be processed"
    )
    ((decided,),) = shop.rows("SELECT count(*) FROM pg_outbox")
    left = GOING_ON_SECONDS - (time.monotonic() - began)
    await_true(lambda: shop.metric("relay", "tallyhook_relay_sent_total") >= decided, left, "the effects to be sent")
    for unit in ("ingress", "stream", "sink", "relay"):
        left = GOING_ON_SECONDS - (time.monotonic() - began)
        await_true(lambda unit=unit: shop.pipeline.answers(unit), left, f"{unit} to be ready")  # type: ignore[misc]


def _each_once(shop: Shop, world: World) -> None:
    """Inbox, ledger, outbox and topics agree with what was posted."""
    deposits = list(world.correlations)
    assert shop.rows("SELECT * FROM quarantined_events WHERE object_id = ANY(%s)", deposits) == []
    applied = shop.rows(
        "SELECT object_id, event_id FROM pg_webhook_inbox WHERE object_id = ANY(%s) ORDER BY partition, arrival_seq",
        deposits,
    )
    assert {event_id for _, event_id in applied} == set(world.events)
    balances, entries = expected_balances(applied, world)
    users = [names[2] for names in world.correlations.values()]
    found = shop.rows("SELECT entry_key, amount_minor FROM pg_user_balance_entries WHERE user_id = ANY(%s)", users)
    assert dict(found) == entries
    found = shop.rows("SELECT user_id, balance_minor FROM pg_user_balances WHERE user_id = ANY(%s)", users)
    assert dict(found) == balances
    repeated = "SELECT count(*) FROM redeliveries WHERE event_id = ANY(%s)"
    shop.await_rows([(len(world.deliveries) - len(world.events),)], repeated, list(world.events))
    outbox = "SELECT dedupe_key FROM pg_outbox WHERE aggregateid = ANY(%s) AND topic = %s"
    for effect in EFFECTS:
        decided = Counter({key: 1 for (key,) in shop.rows(outbox, deposits, effect)})

        def published(effect: str = effect) -> Counter[str]:
            messages = shop.published(shop.names.effect(effect), *deposits)
            return Counter(header_of(message, "ce_id") for message in messages)

        await_true(lambda: published().total() >= decided.total(), 60, f"every {effect}")  # noqa: B023  within the turn
        assert published() == decided
