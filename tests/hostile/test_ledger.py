"""The books of the flood find what they are kept for."""

from collections import Counter

import pytest

from tests.hostile.ledger import Ledger, digest
from tests.hostile.wire_client import Answer

PROBLEM = b"http/1.1 401 unauthorized\r\ncontent-type: application/problem+json\r\n\r\n"
TAKEN = Answer(200, b"http/1.1 200 ok\r\n\r\n", b"")
ONE, OTHER = digest(b"one"), digest(b"other")


@pytest.mark.parametrize(
    ("stored", "sound"),
    [
        ({ONE: 2, OTHER: 0}, True),
        ({ONE: 2, OTHER: 1}, True),
        ({ONE: 1}, False),
        ({ONE: 3}, False),
        ({ONE: 2, OTHER: 2}, False),
        ({ONE: 2, digest(b"forged"): 1}, False),
    ],
)
def test_what_is_stored_is_what_was_answered(stored: dict[bytes, int], sound: bool) -> None:
    """Lost, doubled and forged records are found; what nobody saw the answer of may be there or not."""
    ledger = Ledger()
    for _ in range(2):
        ledger.authentic("sound", b"one", TAKEN)
    ledger.authentic("sound", b"other", None)

    ledger.check(Counter(stored))

    assert (ledger.faults == []) == sound


@pytest.mark.parametrize(
    ("answer", "sound"),
    [
        (Answer(401, PROBLEM, b""), True),
        (TAKEN, False),
        (None, False),
        (Answer(401, b"http/1.1 401 unauthorized\r\n\r\n", b""), False),
        (Answer(500, PROBLEM, b""), False),
        (Answer(431, PROBLEM, b""), False),
        (Answer(503, PROBLEM, b""), False),
        (Answer(503, b"http/1.1 503 x\r\ncontent-type: application/problem+json\r\nretry-after: 5\r\n\r\n", b""), True),
    ],
)
def test_an_answer_that_is_not_of_the_table_is_found(answer: Answer | None, sound: bool) -> None:
    """Another status, a 200 for a forgery, a refusal without its form."""
    ledger = Ledger()

    ledger.expect("spoiled proof", answer, 401)

    assert (ledger.faults == []) == sound


def test_an_authentic_request_must_not_be_refused() -> None:
    """Any 4xx for one is a fault."""
    ledger = Ledger()
    ledger.authentic("sound", b"one", Answer(401, PROBLEM, b""))
    assert len(ledger.faults) == 1
