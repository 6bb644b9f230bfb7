"""Servers that the settings name: they are only asked whether they answer, never started or stopped."""

from collections.abc import Callable

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from tallyhook.errors import LocalStackError, SettingsError
from tallyhook.kafka import client_config
from tallyhook.local.readiness import await_answer, kafka_answers, postgres_answers
from tallyhook.local.service import Progress, Report
from tallyhook.settings import DatabaseSettings, KafkaSettings

ANSWER_SECONDS = 10.0


class Given:
    """A server somebody else runs.

    `address` is what clients connect to, `shown` the same without secrets, `variable` the setting that names it.
    `attempt` returns None when it answers, else the reason.
    """

    pid: int | None = None

    def __init__(
        self,
        name: str,
        address: str,
        shown: str,
        variable: str,
        attempt: Callable[[], str | None],
        report: Report,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.name = name
        self.address = address
        self.shown = shown
        self.variable = variable
        self._attempt = attempt
        self._report = report
        self._answer_seconds = answer_seconds
        self._started = False

    def start(self) -> None:
        """Returns when it answers. Raises LocalStackError when it does not within `answer_seconds`."""
        self._report(Progress(f"{self.name}-start", f"asking {self.shown}"))
        reason = await_answer(self._attempt, self._answer_seconds, lambda: True)
        if reason is not None:
            raise LocalStackError(
                f"{self.name} at {self.shown} (from {self.variable}) does not answer within "
                f"{self._answer_seconds:.0f} s: {reason}. Start it, correct {self.variable}, "
                "or unset it to have one started here"
            )
        self._started = True

    def stop(self) -> None:
        """Leaves it alone."""
        self._started = False

    def running(self) -> bool:
        """Whether it answered at the start; its life is not ours to watch."""
        return self._started


def given_kafka(kafka: KafkaSettings, report: Report, answer_seconds: float = ANSWER_SECONDS) -> Given:
    """The broker of TALLYHOOK_KAFKA_BOOTSTRAP."""
    config = client_config(kafka)
    bootstrap = str(kafka.bootstrap)
    variable = "TALLYHOOK_KAFKA_BOOTSTRAP"
    return Given("kafka", bootstrap, bootstrap, variable, lambda: kafka_answers(config), report, answer_seconds)


def given_postgres(database: DatabaseSettings, report: Report, answer_seconds: float = ANSWER_SECONDS) -> Given:
    """The database of TALLYHOOK_DATABASE_URL. Raises SettingsError when that is no address at all."""
    url = database.url.get_secret_value() if database.url is not None else ""
    password = database.password.get_secret_value() if database.password is not None else None
    return Given(
        "postgres",
        url,
        _without_secrets(url),
        "TALLYHOOK_DATABASE_URL",
        lambda: postgres_answers(url, password),
        report,
        answer_seconds,
    )


def _without_secrets(url: str) -> str:
    """Host, port and database of a libpq URI or keyword string. Raises SettingsError."""
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError:
        # libpq's own words repeat the text, which may hold a password.
        raise SettingsError(
            "TALLYHOOK_DATABASE_URL is neither a libpq URI (postgresql://user@host:port/database) "
            "nor a keyword string (host=... dbname=...)"
        ) from None
    host, port, database = (parts.get(name) for name in ("host", "port", "dbname"))
    return f"{host or 'the default host'}:{port or 5432}/{database or ''}"
