"""What an interrupted first start of the broker leaves behind."""

from pathlib import Path

from tallyhook.local.jars import default_cache_dir
from tallyhook.local.kafka_server import KafkaServer
from tallyhook.local.ports import Ports
from tallyhook.local.readiness import kafka_answers
from tallyhook.settings import LocalSettings
from tests.integration.local.conftest import no_report


def test_a_half_formatted_broker_is_formatted_anew(state_dir: Path) -> None:
    """The marker comes last, so that half a format is not taken for one."""
    half = state_dir / "kafka" / "data" / "meta.properties"
    half.parent.mkdir(parents=True)
    half.write_text("cluster.id=", encoding="utf-8")
    cache = LocalSettings().cache_dir or default_cache_dir()
    broker = KafkaServer(state_dir, Ports(state_dir), cache, no_report)
    try:
        broker.start()
        assert kafka_answers({"bootstrap.servers": broker.address}) is None
        assert broker.running()
    finally:
        broker.stop()
    assert (state_dir / "kafka" / "formatted").exists()
