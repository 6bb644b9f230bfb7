"""Takes away an index that programs of the release before still use."""

from pathlib import Path

from sinks.migrations.statements import execute_file

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None
phase = "post"
compatible_from = "0004"


def upgrade() -> None:
    """Runs the file beside this one."""
    execute_file(Path(__file__).with_suffix(".sql"))
