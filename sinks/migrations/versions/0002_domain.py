"""Withdrawals, balance transactions, gaps."""

from sinks.migrations.statements import execute_file

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None
phase = "pre"
compatible_from = "0002"


def upgrade() -> None:
    """Creates the tables in the installation's schema."""
    execute_file("0002_domain.sql")
