"""Any bytes at the door's reader and then at the sink's: an event, or a typed refusal, and both see the same."""

from collections.abc import Callable
from random import Random

from tests.hostile import absurd
from tests.hostile.fuzzing import fuzz

SEEDS = 400


def prepare() -> Callable[[bytes], None]:
    """The property, with the readers instrumented."""
    from ingress.envelope import BadEnvelope, read
    from tests.hostile.test_same_value import at_the_sink

    def check(raw: bytes) -> None:
        try:
            envelope = read(raw, max_id_bytes=512)
        except BadEnvelope:
            return
        arrival = at_the_sink(raw, envelope)
        # The door writes the headers from the same bytes: that the sink reads another name there would be a difference.
        if arrival.refusal is not None and arrival.refusal.reason == "record_headers":
            raise AssertionError(f"the door read {envelope}, the sink says {arrival.refusal.detail}")

    return check


def seeds() -> list[bytes]:
    """Sound and absurd events."""
    chance = Random(1)
    return [absurd.body(chance, number) for number in range(SEEDS)]


if __name__ == "__main__":
    fuzz(prepare, seeds)
