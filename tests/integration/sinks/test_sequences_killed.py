"""The keeper in the sink's own process: shown as metrics, fed by dead letters, exact after kill -9."""

import random
import signal

from tests.integration.sinks.conftest import Road
from tests.integration.sinks.deliveries import deposit
from tests.integration.sinks.numbered import MERCHANT, Numbered, missing, numbered
from tests.integration.sinks.running import Running, until


def test_a_dead_letter_closes_a_gap_and_the_metrics_tell_what_is_open(stage: Running, road: Road) -> None:
    """The door could read number and merchant, though not use the envelope; the rest stays missing, with its age."""
    place = numbered(road, stage.settings.kafka)
    place.arrive(100, 103, partition=3)
    worker = stage.worker()
    until(lambda: worker.metric("tallyhook_gaps_open") == 2, [worker])
    assert worker.metric("tallyhook_gaps_oldest_seconds") > 3600
    letter = [
        ("ce_stage", "ingress"),
        ("ce_reason", "envelope_version"),
        ("ce_detail", "no version"),
        ("ce_merchant", MERCHANT),
        ("ce_sequence", "101"),
    ]
    stage.put(stage.names.dead_letters, "dep_1", b"{}", letter)
    until(lambda: place.gaps() == [(102, 102)], [worker])
    until(lambda: worker.metric("tallyhook_gaps_open") == 1, [worker])
    assert worker.end() == 0
    assert road.rows("SELECT 1 FROM sequence_keeper WHERE lease_until > now()") == []


def test_the_events_own_numbers_are_kept(stage: Running, road: Road) -> None:
    """What the sink writes into its inbox is what the keeper reads."""
    road.correlate("dep_1")
    worker = stage.worker()
    stage.publish(deposit("evt_1", "dep_1", 1, "open"))
    place = numbered(road, stage.settings.kafka)
    until(lambda: place.head() == (1, 1), [worker])


def test_kill_9_leaves_the_gaps_exact(stage: Running, road: Road) -> None:
    """Two processes, each killed once while numbers come; the next one goes on from the cursors of the other."""
    chance = random.Random(3)
    numbers = chance.sample(range(1, 3000), 2400)
    place: Numbered = numbered(road, stage.settings.kafka)
    place.arrive(0)
    workers = [stage.worker(), stage.worker()]
    until(lambda: place.head() == (0, 0), workers)
    for turn in range(4):
        part = numbers[turn * 600 : turn * 600 + 600]
        for start in range(0, 600, 50):
            place.arrive(*part[start : start + 40], partition=chance.randrange(4))
            for number in part[start + 40 : start + 50]:
                place.set_aside(number)
        if turn in (0, 2):
            # One of the two is the keeper, in whatever it does just now.
            workers[turn // 2].end(signal.SIGKILL)
            workers.append(stage.worker())
    expected = missing(0, [0, *numbers])
    until(lambda: place.gaps() == expected, workers)
    assert place.head() == (0, max(numbers))
