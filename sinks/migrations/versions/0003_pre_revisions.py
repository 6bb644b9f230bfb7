"""The table of revisions, by which older programs learn whether they may stay."""

from sinks.migrations.statements import execute_file

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None
phase = "pre"
compatible_from = "0002"


def upgrade() -> None:
    """Creates the table in the installation's schema."""
    execute_file("0003_pre_revisions.sql")
