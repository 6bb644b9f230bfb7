"""The delivery engine under a time that leaps: the schedule, repeats, giving up, resends, stopping."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from tallyhook.gateway.attempts import Receiver
from tallyhook.gateway.counts import Counts
from tallyhook.gateway.delivery import MAX_RESENDS_WAITING, DeliveryEngine, TooManyResends
from tallyhook.gateway.plan import Delivery, Mischief, deliveries
from tallyhook.gateway.rotation import Rotation, Signer
from tallyhook.gateway.schedule import RetrySchedule
from tallyhook.gateway.signing import SigningKey
from tallyhook.settings.gateway_sim import DEFAULT_RETRY_SECONDS
from tests.unit.gateway_delivery.stepping import (
    START,
    SetClock,
    StepTime,
    WrittenReceiver,
    drain,
    engine_of,
    event,
    world_of,
)

OFFSETS = [timedelta(seconds=int(part)) for part in DEFAULT_RETRY_SECONDS.split(",")]


def one_delivery(number: int = 1) -> Delivery:
    """Of an event, a minute a number after the start."""
    return Delivery(event(number), event(number).created_at)


async def test_a_refused_event_is_tried_at_the_stated_offsets_and_given_up() -> None:
    """Twelve attempts, each so long after the first as the schedule says; then it counts as given up."""
    time = StepTime()
    receiver = WrittenReceiver(time, lambda _id, _attempt: 503)
    engine = engine_of([one_delivery()], receiver, time)
    await drain(engine)
    assert receiver.offsets("evt_1") == OFFSETS
    assert (engine.counts.delivered, engine.counts.pending, engine.counts.lost) == (0, 0, ["evt_1"])
    assert engine.counts.statuses == {503: 12}


@pytest.mark.parametrize("accepted_at", [1, 2, 3, 4, 12])
async def test_an_accepted_event_is_not_tried_again(accepted_at: int) -> None:
    """Whatever went wrong before: no answer, a refusal, a redirect."""
    time = StepTime()
    wrong = (0, 401, 302, 503)
    receiver = WrittenReceiver(time, lambda _id, n: 204 if n == accepted_at else wrong[n % len(wrong)])
    engine = engine_of([one_delivery()], receiver, time)
    await drain(engine)
    assert receiver.offsets("evt_1") == OFFSETS[:accepted_at]
    assert (engine.counts.delivered, engine.counts.lost, engine.counts.attempts) == (1, [], accepted_at)


async def test_a_later_event_passes_one_that_is_being_retried() -> None:
    """The gateway waits for nobody: that is how an event of Monday comes after one of Wednesday."""
    time = StepTime()
    receiver = WrittenReceiver(time, lambda event_id, n: 504 if event_id == "evt_1" and n < 4 else 200)
    await drain(engine_of([one_delivery(1), one_delivery(2), one_delivery(3)], receiver, time))
    assert receiver.ids == ["evt_1", "evt_1", "evt_2", "evt_1", "evt_3", "evt_1"]


async def test_a_duplicate_is_sent_after_the_acceptance_and_only_then() -> None:
    """An event that was accepted comes again; one that was never accepted has no duplicate."""
    time = StepTime()
    after = timedelta(hours=3)
    receiver = WrittenReceiver(time, lambda event_id, n: 200 if event_id == "evt_1" and n > 1 else 503)
    twice = [Delivery(event(n), START, repeat_after=after) for n in (1, 2)]
    engine = engine_of(twice, receiver, time, schedule="0,10")
    await drain(engine)
    assert receiver.offsets("evt_1") == [timedelta(0), timedelta(seconds=10), timedelta(seconds=10) + after]
    assert receiver.offsets("evt_2") == [timedelta(0), timedelta(seconds=10)]
    assert engine.counts.purposes == {"first": 4, "duplicate": 1}
    assert (engine.counts.delivered, engine.counts.lost) == (1, ["evt_2"])


async def test_a_duplicate_that_gives_up_loses_nothing() -> None:
    """The event was accepted before."""
    time = StepTime()
    receiver = WrittenReceiver(time, lambda _id, n: 200 if n == 1 else 500)
    engine = engine_of([Delivery(event(1), START, repeat_after=timedelta(hours=1))], receiver, time)
    await drain(engine)
    assert engine.counts.attempts == 13
    assert (engine.counts.delivered, engine.counts.lost, engine.counts.pending) == (1, [], 0)


async def test_a_plan_with_mischief_delivers_each_event_and_withholds_what_it_must() -> None:
    """The receiver meets the order of the plan, the duplicates, and never a withheld event."""
    world = world_of([event(n, f"dep_{n % 5}", withheld=n == 7) for n in range(1, 41)])
    planned = deliveries(world, Mischief(reorder=0.5, duplicates=0.5))
    repeats = sum(delivery.repeat_after is not None for delivery in planned)
    time = StepTime()
    receiver = WrittenReceiver(time)
    engine = engine_of(planned, receiver, time)
    await drain(engine)
    first_seen = list(dict.fromkeys(receiver.ids))
    assert first_seen == [delivery.event.id for delivery in sorted(planned, key=lambda delivery: delivery.due)]
    assert first_seen != sorted(first_seen, key=lambda event_id: int(event_id.split("_")[1]))
    assert "evt_7" not in first_seen
    assert len(receiver.ids) == len(planned) + repeats
    assert engine.counts.accepted_attempts == len(receiver.ids)


async def test_test_events_do_not_count_as_accepted_live_ones() -> None:
    """A check that waits for the live database must not wait for them."""
    time = StepTime()
    test_event = replace(event(1), livemode=False)
    engine = engine_of([Delivery(test_event, START)], WrittenReceiver(time), time)
    await drain(engine)
    assert (engine.counts.delivered, engine.counts.accepted_attempts) == (1, 0)


async def test_a_resend_goes_out_at_once_and_is_tried_like_any_other() -> None:
    """It saves an event that was given up; a withheld one does not count among the deliverable."""
    time = StepTime()
    receiver = WrittenReceiver(time, lambda event_id, n: 200 if n > (12 if event_id == "evt_1" else 2) else 503)
    engine = engine_of([one_delivery(1)], receiver, time)
    working = asyncio.create_task(engine.run())
    await engine.drained.wait()
    assert engine.counts.lost == ["evt_1"]
    for number in (1, 2):
        engine.resend(event(number, withheld=number == 2))
        assert not engine.drained.is_set()
        await engine.drained.wait()
    engine.stop()
    await working
    assert receiver.ids == ["evt_1"] * 13 + ["evt_2"] * 3
    assert receiver.offsets("evt_2") == OFFSETS[:3]
    assert engine.counts.purposes == {"first": 12, "resend": 4}
    assert (engine.counts.delivered, engine.counts.lost, engine.counts.pending) == (1, [], 0)


async def test_resends_are_bounded() -> None:
    """Beyond the bound the asker is told, and nothing grows."""
    engine = engine_of([], WrittenReceiver(StepTime()), StepTime())
    for _ in range(MAX_RESENDS_WAITING):
        engine.resend(event(1))
    with pytest.raises(TooManyResends):
        engine.resend(event(1))


async def test_the_second_key_signs_from_its_moment_on() -> None:
    """Retries of older events, too; each attempt bears the wall's time."""
    first, second, clock = SigningKey(b"a" * 32), SigningKey(b"b" * 32), SetClock()
    time = StepTime()
    signer = Signer(first, clock, Rotation(second, START + timedelta(minutes=5)))
    receiver = WrittenReceiver(time, lambda event_id, n: 503 if event_id == "evt_1" and n < 4 else 200)
    engine = engine_of([one_delivery(1), one_delivery(9)], receiver, time, signer=signer)
    await drain(engine)
    assert engine.counts.by_key == {first.key_id: 3, second.key_id: 2}
    stamp = str(int(clock.now().timestamp()))
    assert all(headers["webhook-timestamp"] == stamp for _, _, headers in receiver.posts)


class HeldReceiver:
    """Answers when the test lets it; notes how many wait at once."""

    def __init__(self) -> None:
        self.waiting = 0
        self.most = 0
        self.let_go = asyncio.Event()
        self.full = asyncio.Event()

    async def post(self, _body: bytes, _headers: dict[str, str]) -> int:
        """200, once let go."""
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == 4:
            self.full.set()
        await self.let_go.wait()
        self.waiting -= 1
        return 200


def engine_of_four(receiver: Receiver, events: int) -> DeliveryEngine:
    """Four attempts at once, everything due at once."""
    planned = [Delivery(event(n), START) for n in range(events)]
    return DeliveryEngine(
        planned,
        pace=StepTime(),
        schedule=RetrySchedule.from_text("0"),
        signer=Signer(SigningKey(b"k" * 32), SetClock()),
        receiver=receiver,
        counts=Counts(deliverable=events, withheld=0),
        concurrency=4,
    )


async def test_no_more_attempts_at_once_than_allowed() -> None:
    """Twenty events are due, four are on their way; all arrive."""
    receiver = HeldReceiver()
    engine = engine_of_four(receiver, 20)
    working = asyncio.create_task(engine.run())
    await receiver.full.wait()
    receiver.let_go.set()
    await engine.drained.wait()
    engine.stop()
    await working
    assert (receiver.most, engine.counts.delivered) == (4, 20)


async def test_a_stop_waits_for_the_attempts_on_their_way_and_begins_no_other() -> None:
    """What was begun is counted, the rest stays pending."""
    receiver = HeldReceiver()
    engine = engine_of_four(receiver, 20)
    working = asyncio.create_task(engine.run())
    await receiver.full.wait()
    engine.stop()
    receiver.let_go.set()
    await asyncio.wait_for(working, 5)
    assert (engine.counts.delivered, engine.counts.pending) == (4, 16)


async def test_a_fault_of_an_attempt_ends_the_engine() -> None:
    """What the receiver answers is counted; an error of this program must not pass unseen."""

    class Broken:
        async def post(self, _body: bytes, _headers: dict[str, str]) -> int:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(engine_of_four(Broken(), 20).run(), 5)
