"""The whole simulated gateway: it delivers a world's events, plays the merchant's own service, and answers its API."""

import asyncio
from collections.abc import Callable
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tallyhook.clock import Clock
from tallyhook.errors import UsageError
from tallyhook.gateway.api.books import Books
from tallyhook.gateway.api.control import Control
from tallyhook.gateway.api.doors import FaultDoor, KeyDoor
from tallyhook.gateway.api.pages import Pages
from tallyhook.gateway.api.server import ApiServer
from tallyhook.gateway.attempts import HttpReceiver, checked_url
from tallyhook.gateway.correlations import CorrelationWriter
from tallyhook.gateway.counts import Counts
from tallyhook.gateway.delivery import DeliveryEngine
from tallyhook.gateway.journal import Journal
from tallyhook.gateway.plan import Mischief, deliverable, deliveries
from tallyhook.gateway.rotation import KEY_LEAD_SECONDS, Rotation, Signer, publish_keys
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.signing import SigningKey
from tallyhook.gateway.virtual_time import ScaledTime
from tallyhook.gateway.world.model import World
from tallyhook.settings import DatabaseSettings

REPORT_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Api:
    """Where and to whom the API answers; the share of its answers that are faults."""

    host: str
    port: int
    key: str
    fault_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Merchant:
    """Where the merchant's own service writes its correlations."""

    database: DatabaseSettings
    schema: str


@dataclass(frozen=True, slots=True)
class Setup:
    """How a world is delivered.

    Args:
        target: URL of the webhooks.
        key: signs from the beginning.
        rotate_after: virtual time after which a second key signs; None: never.
        keyring_file: where both public keys are written, so that the receiver knows them; needed for a rotation.
        key_lead_seconds: wall time for which the second key is public before it may sign.
        time_factor: virtual seconds a wall second.
        unsubscribed: event types that are neither delivered nor listed.
        concurrency: most attempts at once.
        merchant: None: nobody writes correlations.
        serve: goes on answering after the last delivery, until it is stopped.
        journal_file: what was delivered stands there, and the next run goes on from it; None: each run begins anew.
    """

    target: str
    key: SigningKey
    api: Api
    time_factor: float
    schedule: RetrySchedule
    concurrency: int
    mischief: Mischief = field(default_factory=Mischief)
    unsubscribed: frozenset[str] = frozenset()
    rotate_after: timedelta | None = None
    keyring_file: Path | None = None
    key_lead_seconds: float = KEY_LEAD_SECONDS
    merchant: Merchant | None = None
    serve: bool = False
    journal_file: Path | None = None

    def __post_init__(self) -> None:
        checked_url(self.target)
        if self.rotate_after is not None and self.keyring_file is None:
            raise UsageError("--rotate-after needs --keyring-file: nobody would know the second key")

    @property
    def head_start_seconds(self) -> float:
        """Wall time to wait before the first delivery, so that the second key is public for long enough."""
        if self.rotate_after is None:
            return 0.0
        return max(0.0, self.key_lead_seconds - self.rotate_after.total_seconds() / self.time_factor)


class Simulator:
    """Plays one world once.

    Args:
        started: called with the API's URL once it answers, before the first delivery.
        report: called a few times a second.
        ended: called on a thread once every delivery has ended, while the API still answers.
    """

    def __init__(
        self,
        world: World,
        setup: Setup,
        clock: Clock,
        *,
        started: Callable[[str], None],
        report: Callable[["Simulator"], None],
        ended: Callable[["Simulator"], None],
    ) -> None:
        self.world, self._setup, self._clock = world, setup, clock
        self._started, self._report, self._ended = started, report, ended
        self._journal = Journal(setup.journal_file, world) if setup.journal_file is not None else None
        reached = self._journal.reached if self._journal is not None else world.started_at
        self._pace = ScaledTime(reached, setup.time_factor, clock)
        self.counts = self._counts()
        planned = deliveries(world, setup.mischief, setup.unsubscribed, self.counts.accepted)
        self._receiver = HttpReceiver(setup.target, concurrency=setup.concurrency)
        self._engine = DeliveryEngine(
            planned,
            pace=self._pace,
            schedule=setup.schedule,
            signer=self._signer(),
            receiver=self._receiver,
            counts=self.counts,
            concurrency=setup.concurrency,
            accepted=self._journal.note if self._journal is not None else None,
        )
        merchant = setup.merchant
        self.correlations = (
            CorrelationWriter(world.correlations, merchant.database, merchant.schema, self._pace) if merchant else None
        )
        self._server = self._make_server()
        self._over = asyncio.Event()
        self.finished = False

    @property
    def virtual_now(self) -> datetime:
        """The virtual time of the deliveries; the API tells everything once they have ended."""
        return max(self._pace.now(), self.world.ended_at) if self.finished else self._pace.now()

    async def run(self, stop: asyncio.Event) -> None:
        """Works until every delivery has ended (with `serve`: until `stop`); attempts in flight are waited for.

        Raises:
            TallyhookError: the port cannot be opened, or the database holds another world.
        """
        with closing(self._journal) if self._journal is not None else nullcontext():
            await self._run(stop)

    async def _run(self, stop: asyncio.Event) -> None:
        async with self._receiver, self._server:
            self._started(self._server.url)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._setup.head_start_seconds):
                    await stop.wait()
            self._pace.start()
            work = [asyncio.create_task(self._engine.run())]
            if self.correlations is not None:
                work.append(asyncio.create_task(self.correlations.run()))
            work += [asyncio.create_task(self._until_over(stop)), asyncio.create_task(self._report_until_over())]
            try:
                # Each ends by itself once it is over; a fault of one must not leave the others at work.
                await asyncio.wait(work, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                self._end()
                outcomes = await asyncio.gather(*work, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    def _end(self) -> None:
        self._over.set()
        self._engine.stop()
        if self.correlations is not None:
            self.correlations.stop()

    async def _until_over(self, stop: asyncio.Event) -> None:
        stopped = asyncio.create_task(stop.wait())
        ways = [stopped, asyncio.create_task(self._everything_ended()), asyncio.create_task(self._over.wait())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if ways[1].done():
                self.finished = True
                await asyncio.to_thread(self._ended, self)
                if self._setup.serve:
                    await asyncio.wait({stopped, ways[2]}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            self._end()

    async def _everything_ended(self) -> None:
        await self._engine.drained.wait()
        if self.correlations is not None:
            await self.correlations.finished.wait()

    async def _report_until_over(self) -> None:
        while not self._over.is_set():
            self._report(self)
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_SECONDS):
                    await self._over.wait()
        self._report(self)

    def _counts(self) -> Counts:
        """Begins with what an earlier run has delivered; withheld events that were resent are no part of it."""
        wanted = {event.id for event in deliverable(self.world, self._setup.unsubscribed)}
        before = self._journal.accepted & wanted if self._journal is not None else set()
        withheld = sum(event.never_delivered for event in self.world.events)
        return Counts(deliverable=len(wanted), withheld=withheld, accepted=before)

    def _signer(self) -> Signer:
        setup = self._setup
        second = SigningKey.generate() if setup.rotate_after is not None else None
        if setup.keyring_file is not None:
            publish_keys(setup.keyring_file, [setup.key, *([second] if second else [])])
        if second is None or setup.rotate_after is None:
            return Signer(setup.key, self._clock)
        return Signer(setup.key, self._clock, Rotation(second, self.world.started_at + setup.rotate_after))

    def _make_server(self) -> ApiServer:
        books, api = Books(self.world, self._setup.unsubscribed), self._setup.api
        return ApiServer(
            api.host,
            api.port,
            pages=Pages(books, lambda: self.virtual_now),
            control=Control(self._engine, books, lambda: self.virtual_now, lambda: self.finished),
            key_door=KeyDoor(api.key),
            fault_door=FaultDoor(api.fault_share, self.world.seed),
        )
