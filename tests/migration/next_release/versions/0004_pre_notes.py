"""Adds a column and a table."""

from pathlib import Path

from sinks.migrations.statements import execute_file

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None
phase = "pre"
compatible_from = "0003"


def upgrade() -> None:
    """Runs the file beside this one."""
    execute_file(Path(__file__).with_suffix(".sql"))
