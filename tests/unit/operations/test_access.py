"""The tables of rights: the page shows them, the commands print them, and nothing is in them twice."""

from pathlib import Path

import pytest

from schemas.topics import TopicNames
from tallyhook.errors import SettingsError, UsageError
from tallyhook.kafka import client_config
from tallyhook.operations.access import page
from tallyhook.operations.access.acl import PROCESSES, default_principals, rights
from tallyhook.operations.access.acl_commands import commands
from tallyhook.operations.access.grants import grants, role_names
from tallyhook.operations.access.role_script import grants as grant_script
from tallyhook.settings import Installation, KafkaSettings

PAGE = Path(__file__).parents[3] / "docs" / "access.md"
OWN = Installation(topic_prefix="acme", schema_="shop")


def test_the_page_shows_the_tables() -> None:
    """`python -m tallyhook.operations.access.page docs/access.md` would change nothing."""
    text = PAGE.read_text(encoding="utf-8")
    assert page.filled(text) == text


def test_no_right_is_there_twice() -> None:
    """Each right has one row, with one purpose."""
    keys = [(r.process, r.resource, r.name, r.operation) for r in rights(OWN, default_principals())]
    assert len(keys) == len(set(keys))
    assert len(grants()) == len(set(grants()))


def test_only_the_relay_writes_effects() -> None:
    """Whoever else wrote there would have its records taken for effects."""
    names = TopicNames(OWN.topic_prefix)
    sent = (names.effect(""), names.balance_entries, names.relay_progress)
    writers = {
        right.process
        for right in rights(OWN, default_principals())
        if right.operation == "Write" and right.resource == "topic" and right.name.startswith(sent)
    }
    assert writers == {"relay"}


def test_an_installation_for_test_events_has_no_rights_on_others() -> None:
    """Every topic, group and id is its own, save for the reader's group, which nobody joins."""
    own = Installation(topic_prefix="acme.test", schema_="shop_test", livemode=False)
    foreign = {right.name for right in rights(own, default_principals()) if not right.name.startswith("acme.test.")}
    assert foreign == {"tallyhook-reader", "kafka-cluster"}


def test_the_commands_quote_what_a_shell_would_read() -> None:
    """A principal of a certificate has blanks and equals signs."""
    principals = dict.fromkeys(PROCESSES, "User:CN=the sink,O=Acme")
    lines = [line for line in commands(rights(OWN, principals)) if not line.startswith("#")]
    assert all("--allow-principal 'User:CN=the sink,O=Acme' " in line for line in lines)
    assert any("--transactional-id acme.shop.relay- --resource-pattern-type prefixed" in line for line in lines)


@pytest.mark.parametrize("word", ["PASSWORD", "SUPERUSER", "GRANT ALL"])
def test_the_script_gives_no_more_than_the_table(word: str) -> None:
    """No password, and nothing wholesale."""
    assert word not in grant_script("shop", role_names("shop"))


def test_oauthbearer_is_refused_in_words() -> None:
    """No process starts with it and then waits for ever."""
    settings = KafkaSettings(bootstrap="127.0.0.1:1", security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER")
    with pytest.raises(SettingsError, match="OAUTHBEARER: not supported"):
        client_config(settings)


@pytest.mark.parametrize("prefix", ["", "x" * 51])
def test_a_name_that_postgresql_would_cut_off_is_refused(prefix: str) -> None:
    """Cut off, the names of two roles could be one."""
    with pytest.raises(UsageError, match="--role-prefix"):
        role_names(prefix)
