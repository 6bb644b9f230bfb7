"""One company for all tests of this folder; with --access-long each right is taken away, else one of each kind."""

from collections.abc import Iterator

import psycopg
import pytest
from pydantic import SecretStr

from sinks import migrations
from tallyhook.gateway.signing import SigningKey
from tallyhook.local.jars import default_cache_dir
from tallyhook.local.ports import Ports
from tallyhook.operations.access import role_script
from tallyhook.operations.access.acl import Right
from tallyhook.settings import DatabaseSettings, Installation

from .certificates import OPENSSL, Authority
from .company import PARTITIONS, Company, every_right, passwords
from .secured_kafka import SecuredKafka
from .secured_postgres import PASSWORD, SecuredPostgres, with_tls

INSTALLATION = Installation(topic_prefix="acme", schema_="acme", partitions=PARTITIONS)
SHORTLY = {
    ("stream", "acme.acme.streams", "Read"),
    ("sink", "acme.deposit-correlations", "Read"),
    ("relay", "acme.acme.relay-", "Write"),
}
"""One right of each kind; those whose want was once passed over in silence are among them."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Which rights are taken away."""
    if "taken" in metafunc.fixturenames:
        all_of_them = metafunc.config.getoption("--access-long")
        rights = [right for right in every_right(INSTALLATION) if at_start(right)]
        chosen = [r for r in rights if all_of_them or (r.process, r.name, r.operation) in SHORTLY]
        metafunc.parametrize("taken", chosen, ids=[f"{r.process}-{r.name}-{r.operation}" for r in chosen])


def at_start(right: Right) -> bool:
    """Whether the process uses the right as soon as it starts; the others are used with the first record of a kind."""
    if right.display or right.process not in ("ingress", "stream", "sink", "relay"):
        return False
    # Whoever reads a topic to show its lag may describe it, so that the want of Write is told by the first record.
    return (right.process, right.name, right.operation) not in {
        ("stream", "acme.state-changes", "Write"),
        ("stream", "acme.dead-letters", "Write"),
        ("stream", "acme.acme.streams-objects-changelog", "Write"),
        ("relay", "acme.relay-progress", "Read"),
        ("relay", "acme.relay-progress", "Write"),
    }


@pytest.fixture(scope="session")
def gateway_key() -> SigningKey:
    """The gateway's key."""
    return SigningKey.generate()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signs the certificates."""
    if OPENSSL is None:
        pytest.skip("there is no openssl command")
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def company(
    tmp_path_factory: pytest.TempPathFactory, authority: Authority, gateway_key: SigningKey
) -> Iterator[Company]:
    """Servers, users, ACLs, roles and tables; the topics are for `tallyhook topics apply` to make."""
    binaries = with_tls()
    if binaries is None:
        pytest.skip("there is no PostgreSQL with TLS")
    folder = tmp_path_factory.mktemp("company")
    ports = Ports(folder)
    certificate = authority.issue("server", hosts="IP:127.0.0.1,DNS:localhost")
    kafka = SecuredKafka(folder, ports, default_cache_dir(), authority=authority, certificate=certificate)
    postgres = SecuredPostgres(
        folder, ports, binaries=binaries, certificate=certificate, authority=authority.certificate
    )
    made = Company(kafka, postgres, INSTALLATION, authority.certificate, folder, gateway_key.public_text())
    try:
        kafka.prepare()
        kafka.start()
        postgres.prepare()
        postgres.start()
        _prepare(made)
        yield made
    finally:
        kafka.stop()
        postgres.stop()
        postgres.discard()


def _prepare(company: Company) -> None:
    """What the administrators of Kafka and PostgreSQL do, with what the commands print."""
    company.kafka.make_users(passwords())
    company.kafka.allow(every_right(company.installation))
    schema, roles = company.installation.schema_name, company.roles
    with company.root() as connection:
        connection.execute(role_script.roles(schema, roles).encode())
    company.postgres.set_passwords(list(roles.values()))
    owner = DatabaseSettings(url=SecretStr(company.postgres.url_of(roles["owner"])), password=SecretStr(PASSWORD))
    migrations.upgrade(owner, company.installation)
    with psycopg.connect(company.postgres.url_of(roles["owner"]), password=PASSWORD, autocommit=True) as connection:
        connection.execute(role_script.grants(schema, roles).encode())
