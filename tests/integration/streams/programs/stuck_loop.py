"""The product's worker, whose event loop blocks for ever in its second batch.

Usage: python -m tests.integration.streams.programs.stuck_loop FLAG; FLAG is a file that marks it as done.
"""

import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streams.agent import Guardian
from tests.integration.streams.programs import product


def block_once(flag: Path) -> None:
    """The batch never returns and the loop never turns again; only where FLAG does not exist yet."""
    handle, count = Guardian.handle, 0

    async def handle_or_block(self: Guardian, events: Sequence[Any]) -> None:
        nonlocal count
        count += 1
        if count > 1 and not flag.exists():  # noqa: ASYNC240  the loop is about to be blocked anyway
            flag.touch()  # noqa: ASYNC240
            threading.Event().wait()
        await handle(self, events)

    Guardian.handle = handle_or_block  # type: ignore[method-assign]


if __name__ == "__main__":
    block_once(Path(sys.argv[1]))
    product.main()
