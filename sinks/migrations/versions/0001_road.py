"""The tables of the road."""

from sinks.migrations.statements import execute_file

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None
phase = "pre"
compatible_from = "0001"


def upgrade() -> None:
    """Creates the tables in the installation's schema."""
    execute_file("0001_road.sql")
