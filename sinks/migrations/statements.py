"""Runs a revision's plain SQL, with the installation's schema and the server's kind of generated column filled in."""

from importlib.resources import files
from pathlib import Path
from typing import Any

from alembic import context, op

VIRTUAL_SINCE = 180_000
"""server_version_num from which PostgreSQL knows virtual generated columns."""


def execute_file(name: str | Path) -> None:
    """Executes one file, of `versions/` unless a whole path is given; in offline mode (`--sql`) it is printed."""
    options: dict[str, Any] = dict(context.config.attributes)
    virtual = options["server_version"] >= VIRTUAL_SINCE
    text = files("sinks.migrations").joinpath("versions", name).read_text(encoding="utf-8")
    statement = text.replace("{schema}", f'"{options["schema"]}"').replace(
        "{generated}", "VIRTUAL" if virtual else "STORED"
    )
    if context.is_offline_mode():
        op.execute(statement)
    else:
        # The driver's own call: SQLAlchemy would take colons and percent signs for parameters.
        op.get_bind().exec_driver_sql(statement.replace("%", "%%"))
