"""Files of events: one document, an array, or one object a line."""

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.sources import events


def test_lines_keep_their_bytes() -> None:
    """Blank lines are passed over; what is signed is the line as it stands."""
    found = list(events(b'{"id": "evt_1"}\n\n{"id":"evt_2" }\r\n'))
    assert [(event.id, event.body) for event in found] == [
        ("evt_1", b'{"id": "evt_1"}'),
        ("evt_2", b'{"id":"evt_2" }'),
    ]


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (b'{"id":"evt_1"}\n{"id":"evt_2"\n{"id":"evt_3"}\n', 2),
        (b'{"id":"evt_1"\n{"id":"evt_2"}\n', 1),
        (b'{"id":"evt_1"}\n\n\n{"id":"evt_2"}\n"evt_3"\n', 5),
        (b'{"id":"evt_1"}\n\xff\n', 2),
    ],
)
def test_a_bad_line_is_named(content: bytes, number: int) -> None:
    """By its number in the file, blank lines counted; nothing of the file is taken."""
    with pytest.raises(UsageError, match=f"^line {number} is no JSON object"):
        list(events(content))


@pytest.mark.parametrize("content", [b"not json", b'{\n"id": "evt_1",\n', b"one\ntwo\n", b"\xff\x00"])
def test_what_is_no_json_at_all_stays_as_it_is(content: bytes) -> None:
    """A receiver must be able to be tried with it."""
    (found,) = events(content)
    assert (found.id, found.body) == (None, content)
