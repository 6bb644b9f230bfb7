"""Servers that the settings name."""

import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from tallyhook.errors import LocalStackError, SettingsError
from tallyhook.local.given import given_kafka, given_postgres
from tallyhook.local.ports import LOWEST, is_free
from tallyhook.local.stack import LocalStack, local_stack
from tallyhook.settings import DatabaseSettings, KafkaSettings
from tests.integration.local.conftest import no_report


@pytest.fixture
def closed_port() -> int:
    """A port on which nobody listens."""
    return next(number for number in range(LOWEST - 1000, LOWEST) if is_free(number))


def test_given_servers_are_used_and_left_alone(local_stack: LocalStack, tmp_path: Path) -> None:
    """A stack of given servers has their addresses, starts nothing, and its stop does not touch them."""
    kafka = KafkaSettings(bootstrap=local_stack.kafka_bootstrap)
    database = DatabaseSettings(url=SecretStr(local_stack.database_url))
    with make_stack(tmp_path, kafka, database) as given:
        assert given.kafka_bootstrap == local_stack.kafka_bootstrap
        assert given.database_url == local_stack.database_url
        assert given.kafka.pid is None
        assert given.postgres.pid is None
        assert given.kafka.running()
        assert given.own == ()
    assert local_stack.kafka.running()
    assert local_stack.postgres.running()


def make_stack(state_dir: Path, kafka: KafkaSettings, database: DatabaseSettings) -> LocalStack:
    """A stack by the function of that name, which the fixture hides."""
    return local_stack(state_dir, kafka, database, no_report)


def test_a_given_kafka_that_does_not_answer_is_a_clear_error(closed_port: int) -> None:
    """Within the bound, with the address, the setting and the next step."""
    began = time.monotonic()
    with pytest.raises(LocalStackError) as failure:
        given_kafka(KafkaSettings(bootstrap=f"127.0.0.1:{closed_port}"), no_report, 1).start()
    assert time.monotonic() - began < 10
    message = str(failure.value)
    assert f"kafka at 127.0.0.1:{closed_port} (from TALLYHOOK_KAFKA_BOOTSTRAP) does not answer within 1 s" in message
    assert "unset it to have one started here" in message


def test_a_given_database_that_does_not_answer_is_a_clear_error(closed_port: int) -> None:
    """The same, and the password in the URI stays out of the message."""
    url = f"postgresql://shop:s3cret@127.0.0.1:{closed_port}/till"
    with pytest.raises(LocalStackError) as failure:
        given_postgres(DatabaseSettings(url=SecretStr(url)), no_report, 1).start()
    message = str(failure.value)
    assert f"postgres at 127.0.0.1:{closed_port}/till (from TALLYHOOK_DATABASE_URL) does not answer" in message
    assert "Connection refused" in message or "connection failed" in message
    assert "s3cret" not in message


def test_a_given_address_that_is_none_is_a_wrong_setting() -> None:
    """Not a libpq URI at all: the text, which may hold a secret, is not repeated."""
    with pytest.raises(SettingsError, match="TALLYHOOK_DATABASE_URL is neither a libpq URI") as failure:
        given_postgres(DatabaseSettings().model_copy(update={"url": SecretStr("postgresql//u:s3cret@h")}), no_report)
    assert "s3cret" not in str(failure.value)
