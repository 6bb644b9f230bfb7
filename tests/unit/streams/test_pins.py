"""The repairs of Faust are written against very versions."""

from importlib.metadata import version

from streams.faust_repairs import PINNED_VERSIONS, unexpected_versions

WHAT_TO_DO = """\
Another version is installed than the repairs in streams/faust_*.py were written for. Check each against the new
source before the pin moves: recovery (faust-streaming/faust#596), take_events acking in `finally` (#315, #527), the
event context of table writes (#497), Consumer._drain_messages, getmany, perform_seek and on_partitions_revoked,
AIOKafkaConsumerThread._commit, _seek_wait, _fetch_records and _create_worker_consumer, aiokafka's
GroupCoordinator._coordination_task; the inside of both stores (_key_partition, _db_for_partition,
offset_key); aiokafka's MemoryRecords and its plain Python parser.
Then run pytest tests/integration/streams and pytest -m chaos --chaos-long tests/integration/streams.
"""


def test_the_installed_versions_are_those_the_repairs_were_written_for() -> None:
    """Fails as soon as another one is installed, and says what to look at."""
    assert unexpected_versions() == [], WHAT_TO_DO
    assert {name: version(name) for name in PINNED_VERSIONS} == dict(PINNED_VERSIONS)
