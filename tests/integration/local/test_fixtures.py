"""The fixtures that every integration test builds on."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import NewTopic
from psycopg import sql

from tallyhook.kafka import admin
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings

seen: list[Installation] = []


@pytest.mark.parametrize("turn", [1, 2])
def test_each_test_has_an_installation_of_its_own(
    turn: int, kafka_settings: KafkaSettings, database_settings: DatabaseSettings, installation: Installation
) -> None:
    """Two tests may create the same topic and table: they meet neither each other's nor leftovers."""
    topic = f"{installation.topic_prefix}.events"
    client = admin(kafka_settings)
    client.create_topics([NewTopic(topic, 1)])[topic].result(10)
    assert database_settings.url is not None
    with psycopg.connect(database_settings.url.get_secret_value(), autocommit=True) as connection:
        schema = sql.Identifier(installation.schema_name)
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        connection.execute(sql.SQL("CREATE TABLE {}.t (turn int)").format(schema))
        for earlier in seen:
            query = "SELECT count(*) FROM pg_namespace WHERE nspname = %s"
            row = connection.execute(query, [earlier.schema_name]).fetchone()
            assert row == (0,)
    assert installation not in seen
    seen.append(installation)


SKIPPING = """
import pytest
{line}
def test_one() -> None:
    pytest.skip("no such thing here")
"""


@pytest.mark.parametrize(
    ("strict", "whole_file", "expected"),
    [("0", False, 0), ("1", False, 1), ("0", True, 5), ("1", True, 2)],
    ids=["one test, lenient", "one test, strict", "whole file, lenient", "whole file, strict"],
)
def test_a_skip_without_leave_fails_where_skips_are_strict(
    strict: str, whole_file: bool, expected: int, tmp_path: Path
) -> None:
    """A skip that is not in the list of allowed ones turns the run red, for a test and for a file."""
    hooks = "from tests.conftest import pytest_make_collect_report, pytest_runtest_makereport\n"
    (tmp_path / "conftest.py").write_text(hooks, encoding="utf-8")
    line = 'pytest.skip("the whole file", allow_module_level=True)' if whole_file else ""
    (tmp_path / "test_skipping.py").write_text(SKIPPING.format(line=line), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    outcome = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env={**os.environ, "CI": "", "TALLYHOOK_STRICT_SKIPS": strict, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert outcome.returncode == expected, outcome.stdout
    assert (expected in (1, 2)) == ("is not in allowed-skips.txt" in outcome.stdout)
