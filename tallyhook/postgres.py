"""How clients of PostgreSQL are built, and how named queries become statements with their schema filled in."""

import re
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tallyhook.errors import DatabaseUnavailable, SettingsError
from tallyhook.settings import DatabaseSettings

Connection = psycopg.Connection[tuple[Any, ...]]

_HEADING = re.compile(r"^-- ([a-z_0-9]+): .+$", re.MULTILINE)


def connect(database: DatabaseSettings, component: str) -> Connection:
    """One autocommit connection; raises DatabaseUnavailable, or SettingsError when no URL is set.

    Args:
        component: who connects, shown as application_name in pg_stat_activity.
    """
    if database.url is None:
        raise SettingsError("TALLYHOOK_DATABASE_URL is not set: give a libpq URI, or use `tallyhook up`")
    password = database.password.get_secret_value() if database.password else None
    try:
        return psycopg.connect(
            make_conninfo(database.url.get_secret_value(), password=password),
            autocommit=True,
            connect_timeout=database.connect_timeout_seconds,
            application_name=f"tallyhook-{component}",
            prepare_threshold=5 if database.prepare else None,
            keepalives=1,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            # Keepalives stop while sent bytes are not acknowledged; without this a cut lasts 15 minutes.
            tcp_user_timeout=15_000,
            client_encoding="utf8",
            options="-c timezone=UTC -c statement_timeout=0",
        )
    except (psycopg.ProgrammingError, UnicodeError):
        # Address and password were read when the settings were loaded; these words could repeat either.
        raise SettingsError(
            "TALLYHOOK_DATABASE_URL or TALLYHOOK_DATABASE_PASSWORD cannot be read by libpq: correct them"
        ) from None
    except psycopg.OperationalError as failure:
        raise DatabaseUnavailable(f"PostgreSQL does not answer: {str(failure).strip()}") from failure


def words(failure: BaseException) -> str:
    """What failed, in one line; where PostgreSQL refused for want of a privilege, also what to do next."""
    text = "; ".join(str(failure).split("\n")).strip() or type(failure).__name__
    if isinstance(failure, psycopg.errors.InsufficientPrivilege):
        text += " (`tallyhook migrate --grants` prints what each role needs)"
    return text


class Queries:
    """The statements of one `.sql` file, each under a heading `-- name: what it does`, `{schema}` filled in.

    Args:
        package: the package that holds the file.
        path: the file, relative to the package.
        schema: the installation's schema; quoted as an identifier.
        holes: what else the file leaves open, by its name there.
    """

    def __init__(self, package: str, path: str, schema: str, **holes: sql.Composable) -> None:
        text = files(package).joinpath(path).read_text(encoding="utf-8")
        parts = _HEADING.split(text)
        self._statements = {
            # The text comes from our own package, and what fills its holes is made of identifiers and such text.
            name: sql.SQL(body.strip().rstrip(";")).format(schema=sql.Identifier(schema), **holes)
            for name, body in zip(parts[1::2], parts[2::2], strict=True)
        }

    def __getitem__(self, name: str) -> sql.Composed:
        """The statement of this name; KeyError when the file has none."""
        return self._statements[name]

    @property
    def names(self) -> frozenset[str]:
        """Every name in the file."""
        return frozenset(self._statements)
