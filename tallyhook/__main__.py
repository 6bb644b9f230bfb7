"""`python -m tallyhook`: the same as the command `tallyhook`."""

from tallyhook.cli.main import main

main()
