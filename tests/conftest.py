"""What every test may use: one started Kafka and PostgreSQL for the whole run, an installation of its own a test."""

import contextlib
import os
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import psycopg
import pytest
from confluent_kafka import KafkaException
from psycopg import sql
from pydantic import SecretStr

from tallyhook.kafka import admin
from tallyhook.local.stack import LocalStack
from tallyhook.local.stack import local_stack as make_local_stack
from tallyhook.settings import DatabaseSettings, Installation, KafkaSettings

ALLOWED_SKIPS = Path(__file__).with_name("allowed-skips.txt")
CLEANUP_SECONDS = 10.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """`make chaos` and `make hostile` ask for the long form of what `make test` runs shortly."""
    parser.addoption("--chaos-long", action="store_true", help="run the long form of the tests marked chaos")
    parser.addoption("--access-long", action="store_true", help="take each right of Kafka away, in the place of a few")
    parser.addoption("--hostile-long", action="store_true", help="send 100,000 hostile requests in the place of 5,000")
    parser.addoption("--hostile-seed", type=int, help="seed of the hostile requests; printed by the test")
    parser.addoption("--chaos-seed", type=int, default=None, help="seed of tests/chaos; drawn by lot without it")


@pytest.fixture(scope="session")
def started_stacks() -> list[LocalStack]:
    """The stack of this run once a test has asked for it; empty before."""
    return []


@pytest.fixture(scope="session")
def local_stack(tmp_path_factory: pytest.TempPathFactory, started_stacks: list[LocalStack]) -> Iterator[LocalStack]:
    """Kafka and PostgreSQL: those of TALLYHOOK_KAFKA_BOOTSTRAP and TALLYHOOK_DATABASE_URL, else started here."""
    stack = make_local_stack(
        tmp_path_factory.mktemp("stack"), KafkaSettings(), DatabaseSettings(), lambda _progress: None
    )
    with stack:
        started_stacks.append(stack)
        yield stack
    stack.discard()


@pytest.fixture(scope="session")
def kafka_bootstrap(local_stack: LocalStack) -> str:
    """host:port of the run's Kafka."""
    return local_stack.kafka_bootstrap


@pytest.fixture(scope="session")
def database_url(local_stack: LocalStack) -> str:
    """libpq URI of the run's database."""
    return local_stack.database_url


@pytest.fixture
def kafka_settings(kafka_bootstrap: str) -> KafkaSettings:
    """The settings of a client of the run's Kafka."""
    return KafkaSettings(bootstrap=kafka_bootstrap)


@pytest.fixture
def database_settings(database_url: str) -> DatabaseSettings:
    """The settings of a client of the run's database."""
    return DatabaseSettings(url=SecretStr(database_url))


@pytest.fixture
def installation(started_stacks: list[LocalStack]) -> Iterator[Installation]:
    """Topics and a schema that no other test has; removed afterwards so that the broker stays quick."""
    name = f"t{uuid.uuid4().hex[:12]}"
    own = Installation(topic_prefix=name, schema_=name)
    yield own
    for stack in started_stacks:
        # Cleaning is a courtesy to the tests that follow: a test must not fail by it.
        with contextlib.suppress(KafkaException):
            _remove_topics(stack.kafka_bootstrap, own)
        with contextlib.suppress(psycopg.Error):
            _remove_schema(stack.database_url, own)


def _remove_topics(bootstrap: str, own: Installation) -> None:
    client = admin(KafkaSettings(bootstrap=bootstrap))
    known = client.list_topics(timeout=CLEANUP_SECONDS).topics
    mine = [topic for topic in known if topic.startswith((f"{own.topic_prefix}.", f"{own.topic_prefix}-"))]
    if mine:
        for outcome in client.delete_topics(mine, operation_timeout=CLEANUP_SECONDS).values():
            outcome.result(CLEANUP_SECONDS)


def _remove_schema(database_url: str, own: Installation) -> None:
    with psycopg.connect(database_url, autocommit=True, connect_timeout=10) as connection:
        # A session that a test left open may hold a table; it is not worth waiting for.
        connection.execute("SET lock_timeout = '2s'")
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(own.schema_name)))


def _skips_are_strict() -> bool:
    return os.environ.get("CI") == "true" or os.environ.get("TALLYHOOK_STRICT_SKIPS") == "1"


def _is_allowed_skip(node_id: str) -> bool:
    """`allowed-skips.txt` holds a line for each: the beginning of a test's id, blanks, the reason."""
    lines = ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines() if ALLOWED_SKIPS.exists() else []
    prefixes = [line.split(maxsplit=1)[0] for line in lines if line.strip() and not line.startswith("#")]
    return node_id.startswith(tuple(prefixes)) if prefixes else False


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or hasattr(report, "wasxfail"):
        return
    if _skips_are_strict() and not _is_allowed_skip(report.nodeid):
        report.outcome = "failed"
        report.longrepr = (
            f"{report.nodeid} was skipped and is not in {ALLOWED_SKIPS.name}: {report.longrepr}\n"
            "Install what it needs, or add it there with the reason."
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where skips are strict, a test that is skipped without leave fails."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole file that skips itself."""
    report = yield
    _refuse_skip(report)
    return report
