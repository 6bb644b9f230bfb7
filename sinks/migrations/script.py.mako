"""${message}."""

from sinks.migrations.statements import execute_file

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Runs the file beside this one."""
    execute_file("${up_revision}_${slug}.sql")
