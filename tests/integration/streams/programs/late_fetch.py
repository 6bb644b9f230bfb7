"""A worker whose fetch outlasts a rebalance: it brings the changelog when its records can no longer be handed over.

Usage: python -m tests.integration.streams.programs.late_fetch (product | forgetful). The fault is a race; a fetch that
is held back until the next recovery has set its positions, and a pause before that resumes the flow, make it certain.
`forgetful` does not take back what it throws away, as stock Faust.
"""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

from aiokafka.consumer.fetcher import Fetcher

from streams.faust_consumer import NotingThread
from streams.faust_repairs import SafeRecovery
from tests.integration.streams.programs import product

FIRST_RECOVERY_SEEKS = 2
HOLD_SECONDS = 30.0
PAUSE_SECONDS = 2.0


def pause_after_the_seek() -> None:
    """The changelog's positions are set, the flow is not yet resumed."""
    seek = SafeRecovery._seek_offsets

    async def slow(self: Any, *args: Any) -> None:
        await seek(self, *args)
        await asyncio.sleep(PAUSE_SECONDS)

    SafeRecovery._seek_offsets = slow


def hold_a_fetch() -> None:
    """The first fetch after the first recovery waits for the next one's seek."""
    seek, fetch = NotingThread._seek_wait, Fetcher.fetched_records
    seeks, held = 0, False
    sought = asyncio.Event()

    async def noting(self: Any, *args: Any) -> None:
        nonlocal seeks
        seeks += 1
        if held:
            sought.set()
        await seek(self, *args)

    async def late(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal held
        if seeks >= FIRST_RECOVERY_SEEKS and not held:
            held = True
            await asyncio.wait_for(sought.wait(), HOLD_SECONDS)
        return await fetch(self, *args, **options)

    NotingThread._seek_wait = noting  # type: ignore[method-assign, assignment]
    Fetcher.fetched_records = late


async def forget(_: Any, offsets: Mapping[Any, int]) -> None:
    """In place of `take_back`: it takes nothing back."""


def main(kind: str) -> None:
    """Runs until SIGTERM."""
    pause_after_the_seek()
    hold_a_fetch()
    if kind == "forgetful":
        NotingThread.take_back = forget  # type: ignore[method-assign, assignment]
    product.main()


if __name__ == "__main__":
    main(sys.argv[1])
