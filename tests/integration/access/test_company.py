"""The whole road with the least rights, and what is said where one is missing."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from schemas.topics import TopicNames
from tallyhook import kafka, postgres
from tallyhook.errors import DatabaseUnavailable, KafkaUnavailable
from tallyhook.gateway.signing import SigningKey
from tallyhook.operations.access.acl import Process, Right
from tallyhook.operations.access.grants import Role
from tallyhook.settings import DatabaseSettings, KafkaSettings
from tests.commands import Done, run
from tests.integration.access.certificates import Authority
from tests.integration.access.company import Company, Stage, every_right, user_of
from tests.integration.access.posted import RECEIVED_MINOR, post, settled
from tests.integration.access.secured_postgres import PASSWORD
from tests.running import await_true

READY_SECONDS = 90.0
TOLD_SECONDS = 60.0
STAGES: Mapping[Process, tuple[Role | None, str]] = {
    "ingress": (None, "TALLYHOOK_INGRESS_PORT"),
    "stream": (None, "TALLYHOOK_STREAM_HEALTH_PORT"),
    "sink": ("sink", "TALLYHOOK_SINK_HEALTH_PORT"),
    "relay": ("relay", "TALLYHOOK_RELAY_HEALTH_PORT"),
}

pytestmark = pytest.mark.timeout(240)


def stage(company: Company, process: Process, folder: Path) -> Stage:
    """One process of the pipeline with its user and its role."""
    role, setting = STAGES[process]
    port = company.kafka.ports[f"stage-{process}"]
    return Stage(process, company.environment(process, role), setting, port, folder / f"{process}.log")


def command(company: Company, process: Process | None, role: Role | None, *arguments: str) -> Done:
    """A command with the user and the role that the tables give it."""
    return run(arguments, company.environment(process, role))


@pytest.fixture
def topics(company: Company) -> TopicNames:
    """Made by their own user, recorded by their own role."""
    done = command(company, "topics", "topics", "topics", "apply")
    assert done.returncode == 0, done.stderr
    return TopicNames(company.installation.topic_prefix)


@contextmanager
def running(company: Company, folder: Path) -> Iterator[dict[Process, Stage]]:
    """All four, once they are ready."""
    with ExitStack() as stack:
        stages = {name: stack.enter_context(stage(company, name, folder)) for name in STAGES}
        try:
            await_true(lambda: all(one.ready() for one in stages.values()), READY_SECONDS, "four stages")
            yield stages
        except BaseException as failure:
            for one in stages.values():
                failure.add_note(f"{one.name}: {one.reasons()}\n{one.log()[-1500:]}")
            raise


def test_the_whole_road_with_the_least_rights(
    company: Company, topics: TopicNames, gateway_key: SigningKey, tmp_path: Path
) -> None:
    """A signed POST becomes an effect, an audit finds it, a set-aside event is sent again: each with its own rights."""
    with running(company, tmp_path) as stages:
        _tell_by_topic(company, topics, "dep_1")
        _tell_by_table(company, "dep_2")
        door = stages["ingress"].url
        bodies = [settled("dep_1", 1), settled("dep_2", 2), settled("dep_3", 3, id=5)]
        bodies += [settled("dep_4", 4, livemode=False), settled("dep_5", 5, data={"object": _misshapen("dep_5")})]
        assert [post(door, gateway_key, body)[0] for body in bodies] == [200] * 5

        reader = company.kafka_of("audit")
        effects = topics.effect("release_goods")
        await_true(lambda: len(kafka.read_to_end(reader, effects, timeout_seconds=20)) == 2, 60, "two effects")
        await_true(lambda: _count(company, "quarantined_events") == 2, 60, "two set-aside events")
        assert _balances(company) == {"usr_1": RECEIVED_MINOR, "usr_2": RECEIVED_MINOR}

        sent_again = command(company, "redrive", "tools", "redrive", "--event-id", "evt_dep_5", "--yes")
        assert sent_again.returncode == 0, sent_again.stderr
        await_true(lambda: _count(company, "quarantined_events") == 3, 60, "the event to be set aside again")

        audited = command(company, "audit", "console", "audit")
        assert audited.returncode == 0, audited.stdout + audited.stderr
        shown = command(company, "audit", "console", "topics", "show")
        assert shown.returncode == 0, shown.stdout + shown.stderr
        healthy = json.loads(command(company, "audit", "console", "doctor", "--json").stdout)
        assert "privilege_missing" not in json.dumps(healthy)
        assert all(one.ready() for one in stages.values())


def test_each_right_that_is_taken_is_named(
    company: Company, topics: TopicNames, gateway_key: SigningKey, taken: Right, tmp_path: Path
) -> None:
    """A process without one of its rights says which resource it lacks and where the rights stand, and is not ready."""
    company.kafka.take_away(taken)
    try:
        with stage(company, taken.process, tmp_path) as one:
            # It takes the events of the other mode in as dead letters, so that the door is ready without this one.
            is_ready_without = taken.name in (topics.events.replace("acme.", "acme.test."), "tallyhook-reader")

            def told() -> bool:
                said = f"{one.log()}{one.reasons()}"
                return taken.name in said and "topics acl" in said and (is_ready_without or not one.ready())

            await_true(told, TOLD_SECONDS, f"a word on {taken}; it said: {one.log()[-2000:]} {one.reasons()}")
    finally:
        company.kafka.allow([taken])


def test_a_right_that_comes_later_is_used_without_a_restart(
    company: Company, topics: TopicNames, tmp_path: Path
) -> None:
    """A sink that was refused its group takes its work up once the right is there."""
    right = next(r for r in company_rights(company, "sink") if (r.resource, r.name) == ("group", "acme.acme.sink"))
    company.kafka.take_away(right)
    try:
        with stage(company, "sink", tmp_path) as sink:
            await_true(lambda: any("topics acl" in reason for reason in sink.reasons() or []), TOLD_SECONDS, "a word")
            company.kafka.allow([right])
            await_true(sink.ready, TOLD_SECONDS, "the sink to be ready")
    finally:
        company.kafka.allow([right])


@pytest.mark.parametrize(
    ("process", "table", "privilege"),
    [("sink", "sink_offsets", "UPDATE"), ("relay", "pg_outbox", "SELECT")],
)
def test_a_privilege_that_is_taken_is_named(
    company: Company, topics: TopicNames, process: Process, table: str, privilege: str, tmp_path: Path
) -> None:
    """A process without a privilege names the table and where the grants stand, and is not ready."""
    role = STAGES[process][0]
    assert role is not None
    _change(company, "REVOKE {} ON {} FROM {}", privilege, table, role)
    try:
        with stage(company, process, tmp_path) as one:

            def told() -> bool:
                return any(table in reason and "--grants" in reason for reason in one.reasons() or [])

            await_true(told, TOLD_SECONDS, f"a word on {table}; it said: {one.log()[-2000:]} {one.reasons()}")
    finally:
        _change(company, "GRANT {} ON {} TO {}", privilege, table, role)


def test_a_wrong_password_and_an_unknown_authority_are_told(
    company: Company, topics: TopicNames, tmp_path: Path, authority: Authority
) -> None:
    """Whoever may not come in learns which settings to correct."""
    stranger = Authority(tmp_path / "stranger", "somebody else")
    wrong = [
        ("TALLYHOOK_KAFKA_SASL_PASSWORD", "wrong", "SASL"),
        ("TALLYHOOK_KAFKA_SSL_CA_LOCATION", str(stranger.certificate), "SSL"),
    ]
    for name, value, named in wrong:
        environment = {**company.environment("audit", "console"), name: value}
        done = run(("topics", "show"), environment)
        assert done.returncode == 1
        assert f"TALLYHOOK_KAFKA_{named}" in done.stderr, done.stderr


def test_a_database_without_tls_or_with_another_certificate_is_refused(company: Company, tmp_path: Path) -> None:
    """verify-full is kept: neither plain text nor a certificate of somebody else will do."""
    stranger = Authority(tmp_path / "stranger", "somebody else")
    url = company.postgres.url_of(company.roles["sink"])
    own, other = str(company.certificate), str(stranger.certificate)
    for changed in (url.replace("verify-full", "disable").split("&")[0], url.replace(own, other)):
        settings = DatabaseSettings.model_validate({"url": changed, "password": PASSWORD})
        with pytest.raises(DatabaseUnavailable):
            postgres.connect(settings, "test")


def test_the_merchants_service_may_insert_and_nothing_else(company: Company) -> None:
    """The correlation writer reads no row, not even its own."""
    _tell_by_table(company, "dep_only_written")
    url = company.postgres.url_of(company.roles["correlations"])
    with (
        psycopg.connect(url, password=PASSWORD, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("SELECT FROM acme.pg_deposit_correlations")


def test_a_client_certificate_is_a_user(company: Company, topics: TopicNames, authority: Authority) -> None:
    """mTLS: the certificate's name is the principal, and its rights are that user's."""
    assert kafka.watermarks(_with_certificate(company, authority, "audit"), topics.events, [0], 20.0).keys() == {0}
    with pytest.raises(KafkaUnavailable, match="topics acl"):
        kafka.read_to_end(_with_certificate(company, authority, "correlations"), topics.events, timeout_seconds=20)


def _with_certificate(company: Company, authority: Authority, process: Process) -> KafkaSettings:
    certificate = authority.issue(user_of(process))
    return KafkaSettings.model_validate(
        {
            "bootstrap": company.kafka.mtls_address,
            "security_protocol": "SSL",
            "ssl_ca_location": authority.certificate,
            "ssl_certificate_location": certificate.certificate,
            "ssl_key_location": certificate.key,
        }
    )


def company_rights(company: Company, process: Process) -> list[Right]:
    """Those of one process."""
    return [right for right in every_right(company.installation) if right.process == process]


def _misshapen(deposit: str) -> dict[str, object]:
    shaped: dict[str, object] = json.loads(settled(deposit, 0))["data"]["object"]
    return shaped | {"fee_total_minor": "many"}


def _tell_by_topic(company: Company, topics: TopicNames, deposit: str) -> None:
    client = kafka.producer(
        company.kafka_of("correlations"), linger_ms=1, delivery_timeout_seconds=20, on_fatal=lambda _: None
    )
    errors: list[object] = []
    row = {
        "pg_deposit_id": deposit,
        "merchant_reference": f"ref_{deposit}",
        "our_order_id": "ord",
        "our_user_id": "usr_1",
    }
    client.produce(
        topics.deposit_correlations,
        json.dumps(row).encode(),
        deposit.encode(),
        on_delivery=lambda error, _: errors.append(error),
    )
    client.flush(30)
    assert errors == [None]


def _tell_by_table(company: Company, deposit: str) -> None:
    url = company.postgres.url_of(company.roles["correlations"])
    with psycopg.connect(url, password=PASSWORD, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO acme.pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
            " VALUES (%s, %s, 'ord', 'usr_2') ON CONFLICT DO NOTHING",
            (deposit, f"ref_{deposit}"),
        )


def _count(company: Company, table: str) -> int:
    with company.root() as connection:
        query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(company.installation.schema_name, table))
        row = connection.execute(query).fetchone()
    assert row is not None
    assert isinstance(row[0], int)
    return row[0]


def _balances(company: Company) -> dict[object, object]:
    with company.root() as connection:
        return dict(connection.execute("SELECT user_id, balance_minor FROM acme.pg_user_balances").fetchall())  # type: ignore[arg-type]


def _change(company: Company, statement: str, privilege: str, table: str, role: Role) -> None:
    with company.root() as connection:
        connection.execute(
            sql.SQL(statement).format(
                sql.SQL(privilege),
                sql.Identifier(company.installation.schema_name, table),
                sql.Identifier(company.roles[role]),
            )
        )
