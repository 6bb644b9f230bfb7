"""The guard: verdicts against the plainest model, bounds, and what it remembers."""

from collections import deque

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.verdicts import StreamVerdict
from streams.guard import STATUS_CHARACTERS, WINDOW_VERSIONS, Delivery, Seen, decode, encode, judge

MOST_BYTES = 2048

versions = st.one_of(st.integers(0, 12), st.integers(0, (1 << 63) - 1))
deliveries = st.lists(
    st.builds(
        Delivery,
        version=st.one_of(st.none(), versions),
        status=st.sampled_from(["", "open", "settled"]),
        day=st.integers(20_000, 20_003),
    ),
    max_size=200,
)


def verdicts(sequence: list[Delivery]) -> list[StreamVerdict]:
    """The guard's verdicts on deliveries of one object, each state through its bytes."""
    seen, found = None, []
    for delivery in sequence:
        verdict, after = judge(seen, delivery)
        seen = decode(encode(after))
        assert after == seen
        found.append(verdict)
    return found


def model(sequence: list[Delivery]) -> list[StreamVerdict]:
    """The same by a list of what came and a window."""
    highest: int | None = None
    window: deque[int] = deque(maxlen=WINDOW_VERSIONS)
    immutable = False
    found: list[StreamVerdict] = []
    for version, _, _ in sequence:
        if version is None:
            found.append("redelivered" if immutable else "immutable")
            immutable = True
        elif highest is None or version > highest:
            found.append("advanced")
            highest = version
            window.append(version)
        elif version in window or version == highest:
            found.append("redelivered")
        else:
            found.append("late")
            window.append(version)
    return found


@given(deliveries)
def test_verdicts_are_those_of_the_plain_model(sequence: list[Delivery]) -> None:
    """Whatever comes in whatever order, also through the serialised state."""
    assert model(sequence) == verdicts(sequence)


@given(deliveries)
def test_the_state_shows_the_highest_version_and_its_status(sequence: list[Delivery]) -> None:
    """A late or repeated delivery never changes the current version or status."""
    seen = None
    for delivery in sequence:
        _, seen = judge(seen, delivery)
    known = [delivery for delivery in sequence if delivery.version is not None]
    if known and seen is not None:
        newest = max(known, key=lambda delivery: delivery.version or 0)
        assert (newest.version, newest.status) == (seen.version, seen.status)
        assert max(delivery.day for delivery in sequence) >= seen.touched_day


@given(deliveries)
def test_a_second_delivery_of_the_same_is_always_a_redelivery(sequence: list[Delivery]) -> None:
    """Right after a delivery the same one changes nothing, not even the state object."""
    seen = None
    for delivery in sequence:
        _, seen = judge(seen, delivery)
        verdict, again = judge(seen, delivery)
        assert verdict == "redelivered"
        assert again is seen


@given(st.lists(versions, min_size=1, max_size=300), st.text(max_size=2000))
def test_the_state_is_bounded(sequence: list[int], status: str) -> None:
    """However many versions an object has and however long a status is."""
    seen = None
    for version in sequence:
        _, seen = judge(seen, Delivery(version, status, 20_000))
    assert seen is not None
    assert len(seen.recent) <= WINDOW_VERSIONS
    assert len(seen.status) <= STATUS_CHARACTERS
    assert len(encode(seen)) <= MOST_BYTES


def test_older_than_the_window_counts_as_late() -> None:
    """The 65th version pushes the first one out; the current version is known even outside of the window."""
    rising = [Delivery(version, "", 1) for version in range(WINDOW_VERSIONS + 1)]
    assert verdicts([*rising, Delivery(0, "", 1)])[-1] == "late"
    assert verdicts([*rising, Delivery(1, "", 1)])[-1] == "redelivered"
    late = [Delivery(version, "", 1) for version in range(WINDOW_VERSIONS)]
    assert verdicts([Delivery(1000, "", 1), *late, Delivery(1000, "", 1)])[-1] == "redelivered"


def test_a_redelivery_is_noted_once_a_day() -> None:
    """The day is what retention goes by; within a day nothing changes, so nothing is written."""
    _, seen = judge(None, Delivery(1, "open", 5))
    assert judge(seen, Delivery(1, "open", 5))[1] is seen
    _, touched = judge(seen, Delivery(1, "open", 6))
    assert touched == msgspec.structs.replace(seen, touched_day=6)
    assert judge(touched, Delivery(1, "open", 5))[1] is touched


def test_bytes_of_an_older_program_are_read() -> None:
    """Members that were added later get their defaults."""
    assert decode(msgspec.msgpack.encode([3, "open", [1, 3]])) == Seen(3, "open", (1, 3))


def test_foreign_bytes_are_refused() -> None:
    """What `encode` did not write is no state."""
    with pytest.raises(msgspec.DecodeError):
        decode(b"\x93\x01")
    with pytest.raises(msgspec.DecodeError):
        decode(b"{}")
