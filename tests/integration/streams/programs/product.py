"""The product's worker, as the command `tallyhook stream` runs it."""

import sys

from streams.app import run
from tallyhook.errors import TallyhookError
from tallyhook.settings import load


def main() -> None:
    """Ends with the worker's exit code."""
    try:
        sys.exit(run(load()))
    except TallyhookError as failure:
        sys.stderr.write(f"{type(failure).__name__}: {failure}\n")
        sys.exit(failure.exit_code)


if __name__ == "__main__":
    main()
