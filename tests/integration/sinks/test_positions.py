"""Where the worker reads on: positions come from PostgreSQL, and a topic that does not hold them stops it."""

from confluent_kafka import TopicPartition

from tallyhook import kafka
from tallyhook.operations.accepted_losses import Losses
from tests.integration.sinks.balances import applied
from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import deposit
from tests.integration.sinks.running import Running, until


def test_records_that_are_gone_stop_the_worker_with_the_range(road: Road, stage: Running) -> None:
    """It does not jump: the range and the way out are told, and after the acceptance it goes on by itself."""
    worker = stage.worker()
    road.correlate("dep-1")
    stage.publish(*(deposit(f"evt-{v}", "dep-1", v, "open") for v in range(12)), partition=2)
    until(lambda: applied(road) == 12, stage.workers)
    worker.end()
    stage.publish(*(deposit(f"evt-{v}", "dep-1", v, "open") for v in range(12, 30)), partition=2)
    place = TopicPartition(stage.names.state_changes, 2, 20)
    admin = kafka.admin(stage.settings.kafka)
    for outcome in admin.delete_records([place]).values():
        outcome.result(30)
    late = stage.worker()
    until(lambda: "records 12 to 19 (8) are gone" in late.reasons(), stage.workers)
    assert late.page("livez")[0] == 200
    assert "`tallyhook sink accept-loss --partition 2 --to-offset 20 --reason" in late.reasons()
    assert applied(road) == 12
    until(lambda: late.metric("tallyhook_sink_stopped") == 1, stage.workers)
    losses = Losses(road.connection, stage.settings, stage.names.state_changes)
    losses.accept(2, 20, actor="test", reason="they are gone", dry_run=False)
    until(lambda: applied(road) == 22, stage.workers)
    until(lambda: not late.reasons(), stage.workers)
    until(lambda: late.metric("tallyhook_sink_stopped") == 0, stage.workers)


def test_transactions_of_foreign_writers_do_not_count_until_committed(road: Road, stage: Running) -> None:
    """Aborted records are never applied, and the offsets that markers take are passed over."""
    worker = stage.worker()
    road.correlate("dep-1")
    writer = kafka.producer(
        stage.settings.kafka,
        linger_ms=0,
        delivery_timeout_seconds=30,
        transactional_id=f"{stage.names.prefix}-foreign",
        on_fatal=lambda _: None,
    )
    writer.init_transactions(30)
    for version, commit in ((1, True), (2, False), (3, True)):
        event = deposit(f"evt-{version}", "dep-1", version, "open")
        writer.begin_transaction()
        writer.produce(stage.names.state_changes, key="dep-1", value=event.body, headers=event.headers(0, version))
        writer.flush(30)
        if commit:
            writer.commit_transaction(30)
        else:
            writer.abort_transaction(30)
    stage.publish(deposit("evt-4", "dep-1", 4, "open"))
    until(lambda: applied(road) == 3, stage.workers)
    assert road.rows("SELECT event_id FROM pg_webhook_inbox ORDER BY arrival_seq") == [
        ("evt-1",),
        ("evt-3",),
        ("evt-4",),
    ]
    assert worker.metric("tallyhook_sink_batches_repeated_total") == 0
