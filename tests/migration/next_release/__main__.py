"""`python -m tests.migration.next_release ...`: the command line as the next release has it."""

from pathlib import Path

from sinks import migrations
from tallyhook.cli.main import main

migrations.FOLDERS = (*migrations.FOLDERS, Path(__file__).parent / "versions")
migrations.HEAD, migrations.NEEDED = "0005", "0004"
main()
