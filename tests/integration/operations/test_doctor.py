"""`tallyhook doctor`: each danger, planted in a real installation, is named by its id, and its repair repairs it."""

import pytest
from psycopg import sql

from schemas.topics import TopicNames
from tests.integration.operations.operated import PARTITIONS, Operated
from tests.integration.operations.planted import Planted, replicated


@pytest.fixture
def planted(still: Operated) -> Planted:
    """A clean installation."""
    return Planted(still)


@pytest.fixture
def tables(quiet: Operated) -> Planted:
    """Tables without topics: what is found of the topics is left aside."""
    return Planted(quiet)


def test_a_clean_installation_is_clean(planted: Planted) -> None:
    """Nothing is found, nothing is changed, exit code 0; for people a verdict, for programs the same."""
    before = planted.shop.rows("SELECT count(*) FROM sink_offsets")
    assert planted.report(code=0)["findings"] == []
    shown = planted.shop.command("doctor")
    assert shown.returncode == 0
    assert "healthy: 0 that break a promise, 0 warnings" in shown.stdout
    assert "not looked at: the gateway's clock" in shown.stdout
    assert planted.shop.rows("SELECT count(*) FROM sink_offsets") == before


def test_five_at_once_are_all_named(planted: Planted) -> None:
    """With what is there, what must be, which promise it endangers and the command; exit code 1."""
    names = planted.shop.names
    planted.configure(names.events, retention_ms="3600000", max_message_bytes="100000")
    planted.configure(names.state_changes, cleanup_policy="compact")
    planted.grow(names.dead_letters, PARTITIONS + 1)
    planted.applied_to(names.state_changes, 2, 500)
    found = {(finding["id"], finding["subject"]): finding for finding in planted.findings(code=1)}
    assert set(found) == {
        ("retention_short", f"topic {names.events}"),
        ("record_limit", f"topic {names.events}"),
        ("compacted", f"topic {names.state_changes}"),
        ("topic_partitions", f"topic {names.dead_letters}"),
        ("sink_position", f"partition 2 of {names.state_changes}"),
    }
    for finding in found.values():
        assert finding["severity"] == "breaks"
        assert finding["promises"]
        assert all(finding[part] for part in ("found", "wanted", "endangers", "repair"))
    shown = planted.shop.command("doctor")
    assert shown.returncode == 1
    for (identity, subject), finding in found.items():
        assert f"{identity}: {subject}" in shown.stdout
        assert finding["repair"] in shown.stdout
    assert "NOT healthy: 5 that break a promise, 0 warnings" in shown.stdout


def test_what_topics_apply_repairs(planted: Planted) -> None:
    """The named command makes the installation clean again."""
    names = planted.shop.names
    planted.configure(names.dead_letters, retention_ms="3600000")
    planted.configure(names.state_changes, retention_ms=str(100 * 3_600_000), min_insync_replicas="2")
    planted.configure(names.relay_progress, cleanup_policy="delete")
    planted.configure(names.balance_entries, cleanup_policy="compact")
    planted.delete(names.effect("release_goods"))
    planted.shop.rows("DELETE FROM installed_topics WHERE topic = ANY(%s) RETURNING 1", [names.events])
    planted.shop.rows("DELETE FROM installed_topics WHERE topic = %s RETURNING 1", names.effect("release_goods"))
    found = planted.findings(code=1)
    assert {(finding["id"], finding["severity"]) for finding in found} == {
        ("retention_short", "breaks"),
        ("retention_low", "warning"),
        ("insync_replicas", "breaks"),
        ("not_compacted", "breaks"),
        ("compacted", "breaks"),
        ("topic_missing", "breaks"),
        ("topic_unrecorded", "breaks"),
    }
    assert {finding["repair"] for finding in found} == {"tallyhook topics apply"}
    severities = [finding["severity"] for finding in found]
    assert severities == sorted(severities)
    assert planted.shop.command("topics", "apply").returncode == 0
    assert planted.ids(code=0) == set()


def test_a_topic_that_was_made_anew(planted: Planted) -> None:
    """Its id tells, in the recorded topics and in the position."""
    names = planted.shop.names
    planted.shop.rows("UPDATE installed_topics SET topic_id = 'other' WHERE topic = %s RETURNING 1", names.events)
    planted.applied_to(names.dead_letters, 1, 0, topic_id="other")
    assert planted.one("topic_replaced")["subject"] == f"topic {names.events}"
    found = planted.one("sink_position")
    assert found["subject"] == f"partition 1 of {names.dead_letters}"
    assert "topic with id other" in found["found"]


def test_limits_and_sizes_of_records(planted: Planted) -> None:
    """A body that fits into no topic, an effect that the relay could not send, a bound by size."""
    names = planted.shop.names
    planted.configure(names.effect("hold_goods"), max_message_bytes="70000")
    planted.configure(names.events, retention_bytes="1000000")
    assert planted.ids(code=1) == {"payload_limit", "retention_bytes"}
    for name in (names.events, names.state_changes, names.dead_letters):
        planted.configure(name, max_message_bytes="1048588")
    found = planted.one("record_limit", TALLYHOOK_INGRESS_MAX_BODY_BYTES="2000000")
    for name in (names.events, names.state_changes, names.dead_letters):
        assert f"max.message.bytes of {name}=1048588" in found["found"]
    assert "endpoint default: max_body_bytes=2000000" in found["found"]


def test_a_position_below_what_the_topic_holds(planted: Planted) -> None:
    """Partition, range and count are told, with the command that accepts the loss; inside of the range is well."""
    topic = planted.shop.names.state_changes
    partition = planted.fill(topic, 30)
    planted.cut(topic, partition, 20)
    planted.applied_to(topic, partition, 12)
    found = planted.one("sink_position")
    assert found["subject"] == f"partition {partition} of {topic}"
    assert "records 12 to 19 (8) are gone" in found["found"]
    assert f"tallyhook sink accept-loss --partition {partition} --to-offset 20" in found["repair"]
    for inside in (20, 25):
        planted.applied_to(topic, partition, inside)
        assert planted.ids(code=0) == {"sink_idle"}
    assert planted.one("sink_idle", code=0)["found"] == "5 records wait, and nothing was applied for 3 s"
    planted.applied_to(topic, partition, 30)
    assert planted.ids(code=0) == set()
    planted.applied_to(topic, partition, 31)
    assert "the broker lost 1 records" in planted.one("sink_position")["found"]


def test_a_topic_that_lost_its_beginning_before_the_first_claim(planted: Planted) -> None:
    """The sink begins at 0, and 0 is gone."""
    topic = planted.shop.names.dead_letters
    partition = planted.fill(topic, 5)
    planted.cut(topic, partition, 3)
    found = planted.one("sink_position")
    assert "records 0 to 2 (3) are gone" in found["found"]
    assert "--topic dead-letters" in found["repair"]


def test_positions_of_the_stream(planted: Planted) -> None:
    """Outside of the topic's range, of another topic, or none though the beginning is gone."""
    topic = planted.shop.names.events
    partition = planted.fill(topic, 10)
    planted.commit(topic, partition, 7, planted.topic_id(topic))
    assert planted.ids(code=0) == set()
    planted.cut(topic, partition, 8)
    found = planted.one("stream_position")
    assert found["subject"] == f"partition {partition} of {topic}"
    assert "8..10" in found["found"]
    planted.commit(topic, partition, 9, "AAAAAAAAAAAAAAAAAAAAAA")
    assert "AAAAAAAAAAAAAAAAAAAAAA" in planted.one("stream_position")["found"]


def test_a_stream_without_a_position_on_a_topic_without_a_beginning(planted: Planted) -> None:
    """Only a warning: it may be an installation that was emptied on purpose."""
    topic = planted.shop.names.events
    partition = planted.fill(topic, 4)
    planted.cut(topic, partition, 4)
    found = planted.one("stream_position", code=0)
    assert (found["severity"], found["subject"]) == ("warning", f"partition {partition} of {topic}")


def test_progress_of_the_relay(planted: Planted) -> None:
    """Less than was sent, a row that the database no longer has, and a record that no relay wrote."""
    topic = planted.shop.names.relay_progress
    planted.shop.rows("INSERT INTO relay_cursors (partition, sent_seq) VALUES (1, 5) RETURNING 1")
    found = planted.one("relay_progress")
    assert found["subject"] == f"partition 1 of {topic}"
    assert "is empty, but rows up to 5 were sent" in found["found"]
    planted.shop.rows("DELETE FROM relay_cursors RETURNING 1")
    value = b'{"seq":3,"id":"7f3c9b0e-0000-4000-8000-000000000000"}'
    planted.shop.client.produce(topic, partition=2, key="2", value=value)
    planted.shop.client.produce(topic, partition=3, key="3", value=b"nothing of ours")
    assert planted.shop.client.flush(20) == 0
    both = {
        finding["subject"]: finding["found"]
        for finding in planted.findings(code=1)
        if finding["id"] == "relay_progress"
    }
    assert set(both) == {f"partition 2 of {topic}", f"partition 3 of {topic}"}
    assert "outbox rewound" in both[f"partition 2 of {topic}"]
    assert "no progress of a relay" in both[f"partition 3 of {topic}"]


def test_a_replicated_installation_on_a_single_node(planted: Planted) -> None:
    """Replicas, in-sync replicas, the standby and the changelog: each is named for the topic that lacks it."""
    names = planted.shop.names
    planted.configure(names.events, unclean_leader_election_enable="true")
    found = replicated(planted).findings(code=1)
    subjects = {finding["id"]: finding["subject"] for finding in found}
    assert set(subjects) == {
        "replication_low",
        "insync_replicas",
        "unclean_election",
        "synchronous_standby",
        "changelog_replication",
    }
    low = {finding["subject"] for finding in found if finding["id"] == "replication_low"}
    assert {f"topic {names.events}", f"topic {names.relay_progress}"} <= low
    assert subjects["unclean_election"] == f"topic {names.events}"


@pytest.mark.parametrize(("revision", "repair"), [("0001", "tallyhook migrate"), ("9999", "deploy the newer program")])
def test_a_schema_of_another_revision(tables: Planted, revision: str, repair: str) -> None:
    """Too old and too new are told apart; what such a schema holds is not judged."""
    tables.shop.rows("UPDATE alembic_version SET version_num = %s RETURNING 1", revision)
    found = tables.one("schema_revision")
    assert f"revision {revision}" in found["found"]
    assert found["repair"] == repair
    assert "table_missing" not in tables.ids(code=1)


def test_what_is_wrong_in_the_tables(tables: Planted) -> None:
    """A table that is gone, another installation's topics, other shards, rows that nobody sends, unkept numbers."""
    run = tables.shop.rows
    run("INSERT INTO relay_installation (shards) VALUES (2) RETURNING 1")
    run("INSERT INTO relay_cursors (partition) VALUES (0) RETURNING 1")
    run(
        "INSERT INTO pg_outbox (partition, seq, aggregatetype, aggregateid, type, topic, payload, dedupe_key,"
        " causation_id, version, received_at) VALUES (0, 0, 'a', 'a', 't', 't', '{}', 'k', 'e', 1, now()) RETURNING 1"
    )
    run("INSERT INTO sequence_sources VALUES ('inbox', 0, 0) RETURNING 1")
    other = TopicNames("other.test").state_changes
    run("INSERT INTO installed_topics (topic, topic_id, partitions) VALUES (%s, 'x', 4) RETURNING 1", other)
    tables.shop.connection.execute("DROP TABLE backfills")
    found = {finding["id"]: finding for finding in tables.findings(code=1) if finding["id"] != "topic_missing"}
    assert {name: finding["severity"] for name, finding in found.items()} == {
        "relay_shards": "breaks",
        "relay_idle": "warning",
        "sequences_unkept": "warning",
        "schema_shared": "breaks",
        "table_missing": "breaks",
    }
    assert "backfills" in found["table_missing"]["found"]
    assert other in found["schema_shared"]["found"]
    assert "partitions 0, where 1 rows wait" in found["relay_idle"]["found"]
    run("UPDATE relay_cursors SET owner = 'r', lease_until = now() + interval '1 hour' RETURNING 1")
    run("UPDATE sequence_keeper SET lease_until = now() + interval '1 hour' RETURNING 1")
    assert not {"relay_idle", "sequences_unkept"} & tables.ids(code=1)
    assert "relay_shards" not in tables.ids(code=1, TALLYHOOK_RELAY_SHARDS="2")


def test_a_role_that_may_not_write(tables: Planted) -> None:
    """What it lacks, as GRANT would give it; its own settings count, too."""
    with tables.role("synchronous_commit = off", "default_transaction_read_only = on") as url:
        found = {finding["id"]: finding for finding in tables.findings(code=1, TALLYHOOK_DATABASE_URL=url)}
        lacking = found["privilege_missing"]
        assert "INSERT on pg_outbox" in lacking["found"]
        assert "SELECT" not in lacking["found"]
        assert found["server_read_only"]["severity"] == "breaks"
        assert found["synchronous_commit"]["severity"] == "warning"
        assert "sequence_keeper" in lacking["repair"]
        schema = sql.Identifier(tables.shop.settings.installation.schema_name).as_string()
        tables.shop.connection.execute(
            f"GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {url.split('//')[1].split(':')[0]}".encode()
        )
        assert "privilege_missing" not in tables.ids(code=1, TALLYHOOK_DATABASE_URL=url)
    assert not {"privilege_missing", "server_read_only", "synchronous_commit"} & tables.ids(code=1)


def test_settings_of_the_door(tables: Planted) -> None:
    """Keys that cannot be used, none, a merchant that is not named, and a variable that nobody reads."""
    assert "keys_unusable" in tables.ids(code=1, TALLYHOOK_INGRESS_PUBLIC_KEYS="whpk_no")
    mistyped = tables.one("setting_unknown", TALLYHOOK_SINK_BATCH_ROW="5")
    assert mistyped["subject"] == "variable TALLYHOOK_SINK_BATCH_ROW"
    del tables.shop.environment["TALLYHOOK_INGRESS_MERCHANT_ID"]
    assert "merchant_any" in tables.ids(code=1)
    del tables.shop.environment["TALLYHOOK_INGRESS_PUBLIC_KEYS"]
    assert "keys_unset" in tables.ids(code=1)


def test_what_does_not_answer_is_named_and_the_rest_looked_at(tables: Planted) -> None:
    """Exit code 2, whichever of the two it is; settings that make no sense are 2 as well."""
    away = {"TALLYHOOK_KAFKA_BOOTSTRAP": "127.0.0.1:1", "TALLYHOOK_KAFKA_REQUEST_TIMEOUT_SECONDS": "1"}
    tables.shop.rows("UPDATE alembic_version SET version_num = '0001' RETURNING 1")
    report = tables.report(code=2, **away)
    assert [words.split(",")[0] for words in report["unreachable"]] == ["Kafka at 127.0.0.1:1"]
    assert {finding["id"] for finding in report["findings"]} == {"schema_revision"}
    report = tables.report(code=2, TALLYHOOK_DATABASE_URL="postgresql://127.0.0.1:1/absent")
    assert [words.split(":")[0] for words in report["unreachable"]] == ["PostgreSQL does not answer"]
    assert {finding["id"] for finding in report["findings"]} == {"topic_missing"}
    assert tables.shop.command("doctor", TALLYHOOK_SINK_BATCH_ROWS="0").returncode == 2
