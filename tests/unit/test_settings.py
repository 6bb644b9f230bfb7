"""Settings: bounds are told, secrets come from files, and another process can be given the same ones."""

from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from tallyhook.errors import SettingsError
from tallyhook.settings import (
    OPTION_VARIABLES,
    DatabaseSettings,
    IngressSettings,
    Installation,
    as_environment,
    describe,
    load,
    load_component,
    unknown_variables,
)
from tests.command_tree import option_variables


@pytest.fixture(autouse=True)
def no_settings_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test starts with the defaults."""
    import os

    for name in list(os.environ):
        if name.startswith("TALLYHOOK_"):
            monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TALLYHOOK_SINK_BATCH_ROWS", "0", "TALLYHOOK_SINK_BATCH_ROWS=0: must be 1..5000 (rows)"),
        ("TALLYHOOK_DURABILITY", "maybe", "TALLYHOOK_DURABILITY=maybe: must be single-node or replicated"),
        ("TALLYHOOK_SCHEMA", "a b", "TALLYHOOK_SCHEMA=a b: must be like ^[a-z_][a-z0-9_]{0,62}$"),
        ("TALLYHOOK_LIVEMODE", "perhaps", "TALLYHOOK_LIVEMODE=perhaps: must be true or false"),
        ("TALLYHOOK_INGRESS_PORT", "65536", "TALLYHOOK_INGRESS_PORT=65536: must be 0..65535"),
    ],
)
def test_a_wrong_value_is_told_with_its_bounds(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    """Name, value, bounds and unit in one line."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError, match="must be") as refused:
        load()
    assert message in str(refused.value)


def test_secrets_come_from_files_and_a_direct_value_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`..._FILE` for each secret; the end of line is dropped."""
    file = tmp_path / "password"
    file.write_text("from-file\n")
    monkeypatch.setenv("TALLYHOOK_DATABASE_PASSWORD_FILE", str(file))
    password = load_component(DatabaseSettings).password
    assert password is not None
    assert password.get_secret_value() == "from-file"
    monkeypatch.setenv("TALLYHOOK_DATABASE_PASSWORD", "direct")
    password = load_component(DatabaseSettings).password
    assert password is not None
    assert password.get_secret_value() == "direct"


def test_an_unreadable_secret_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable and the path."""
    monkeypatch.setenv("TALLYHOOK_DATABASE_PASSWORD_FILE", "/no/such/file")
    with pytest.raises(SettingsError, match="TALLYHOOK_DATABASE_PASSWORD_FILE=/no/such/file: cannot be read"):
        load_component(DatabaseSettings)


def test_a_secret_in_the_place_of_its_file_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no absolute path may be the secret itself."""
    monkeypatch.setenv("TALLYHOOK_DATABASE_URL_FILE", "postgresql://u:hunter2@h/d")
    with pytest.raises(SettingsError, match=r"TALLYHOOK_DATABASE_URL_FILE=\.\.\.: cannot be read") as refused:
        load_component(DatabaseSettings)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2%zz@127.0.0.1/db",
        "postgres:/usr:hunter2@h/db",
        "hunter2",
        "postgresql://u:hun@ter2@127.0.0.1/db",
        "postgresql://u:hun/ter2@127.0.0.1/db",
        "postgresql://u:5432/hunter2@127.0.0.1/db",
        "postgresql://u:hunter2",
        "postgresql://u:hunter2#h/db",
        "postgresql://u:hunter2@h:99999/db",
        "postgresql://u:hunter2@h/db?no_such_option=1",
        "host=h password=hun ter2",
    ],
)
def test_a_mistyped_database_address_is_not_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str) -> None:
    """Refused when it is loaded, also from a file; nothing of it stands in the message, nor in an error of pydantic."""
    expected = r"^TALLYHOOK_DATABASE_URL=\.\.\.: must be a libpq URI"
    monkeypatch.setenv("TALLYHOOK_DATABASE_URL", url)
    with pytest.raises(SettingsError, match=expected) as refused:
        load()
    assert "ter2" not in str(refused.value)

    monkeypatch.delenv("TALLYHOOK_DATABASE_URL")
    (tmp_path / "address").write_text(url)
    monkeypatch.setenv("TALLYHOOK_DATABASE_URL_FILE", str(tmp_path / "address"))
    with pytest.raises(SettingsError, match=expected) as from_file:
        load()
    assert "ter2" not in str(from_file.value)

    with pytest.raises(ValidationError) as direct:
        DatabaseSettings(url=SecretStr(url))
    assert "ter2" not in str(direct.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://",
        "postgresql://u:hun%40ter2@h:5432/d?sslmode=require",
        "postgres://u@h1:5432,h2:5433/d?target_session_attrs=read-write",
        "postgresql:///d?host=/run/postgresql",
        "postgresql://[::1]:5432/d",
        "host=@abstract dbname=a@b port=5432 password='hun ter2'",
        "service=shop",
    ],
)
def test_what_libpq_reads_is_taken(url: str) -> None:
    """URIs and keyword strings, several hosts, sockets."""
    taken = DatabaseSettings(url=SecretStr(url)).url
    assert taken is not None
    assert taken.get_secret_value() == url


def test_a_wrong_secret_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """No secret in an error's text or in a component's."""
    monkeypatch.setenv("TALLYHOOK_DATABASE_URL", "postgresql://u:hunter2@h/d")
    assert "hunter2" not in repr(load())


def test_every_setting_is_described() -> None:
    """Meaning everywhere; a unit wherever a number has bounds."""
    rows = list(describe())
    assert len({row.variable for row in rows}) == len(rows)
    assert [row.variable for row in rows if not row.meaning] == []
    assert [row.variable for row in rows if ".." in row.bounds and not row.unit] == []


def test_another_process_reads_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """`as_environment` and `load` are inverse to each other."""
    from dataclasses import replace

    own = replace(
        load(),
        installation=Installation(topic_prefix="shop", schema_="shop", livemode=False, partitions=3),
        database=DatabaseSettings(url=SecretStr("postgresql://h/d")),
        ingress=IngressSettings(merchant_id="mer_1", tolerance_seconds=60),
    )
    for name, value in as_environment(own).items():
        monkeypatch.setenv(name, value)
    assert load() == own


def test_unknown_variables_are_found() -> None:
    """A typing error is named; what is ours or foreign is not."""
    environ = {"TALLYHOOK_SCHEMA": "a", "TALLYHOOK_SHEMA": "a", "PATH": "/", "TALLYHOOK_DATABASE_PASSWORD_FILE": "f"}
    assert unknown_variables(environ) == ["TALLYHOOK_SHEMA"]


def test_variables_of_options_are_known() -> None:
    """What an option of the command line reads is no typing error."""
    assert option_variables() == OPTION_VARIABLES
    assert unknown_variables(dict.fromkeys(option_variables(), "x")) == []


def test_defaults_stand_as_one_writes_them() -> None:
    """A switch is true or false, not Python's words."""
    switches = {row.variable: row.default for row in describe() if row.bounds == "true or false"}
    assert switches["TALLYHOOK_LIVEMODE"] == "true"
    assert set(switches.values()) <= {"true", "false"}


def test_installations_never_meet() -> None:
    """Names and keys differ when either prefix or schema differs, and a channel fits PostgreSQL's 63 bytes."""
    one, two = Installation(topic_prefix="a" * 100, schema_="s"), Installation(topic_prefix="a" * 100, schema_="t")
    assert one.group_id("sink") != two.group_id("sink")
    assert one.lock_key("relay") != two.lock_key("relay")
    assert one.channel("outbox") != two.channel("outbox")
    assert len(one.channel("outbox")) <= 63
    assert -(1 << 63) <= one.lock_key("relay") < 1 << 63
