"""Which rows are those that were sent, and what a user's entries must announce."""

from datetime import UTC, datetime

import pytest

from tallyhook.operations.rewound.announced import fit
from tallyhook.operations.rewound.matching import Matched, RemadeRow, match
from tallyhook.operations.rewound.sent import SentEffect, digest

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def effect(seq: int, key: str, **changed: str) -> SentEffect:
    """Sent under this number; objects are named by the key's first letter."""
    members = {"effect": "hold_goods", "object_id": key[0], "causation_id": f"evt_{key}", "version": "1"} | changed
    return SentEffect(seq=seq, dedupe_key=key, written_at=NOW, content=b"c", payload=None, where="here", **members)


def row(seq: int, key: str, content: bytes = b"c", **changed: str) -> RemadeRow:
    """Made again under this number."""
    members = {"effect": "hold_goods", "object_id": key[0], "causation_id": f"evt_{key}", "version": "1"} | changed
    return RemadeRow(seq=seq, dedupe_key=key, content=content, payload=None, **members)


def matched(sent: str, rows: str) -> Matched:
    """Keys by number, from 5 on; the database kept row 4."""
    keys, made = sent.split(), rows.split()
    effects = {number: effect(number, key) for number, key in enumerate(keys, 5)}
    return match(0, 4, 4 + len(keys), effects, [row(number, key) for number, key in enumerate(made, 5)])


@pytest.mark.parametrize(
    ("sent", "rows", "numbers"),
    [
        ("a1 b1", "a1 b1", {}),
        ("a1 b1", "a1 b1 c1", {}),
        ("a1 b1", "b1 a1", {5: 6, 6: 5}),
        ("a1 b1", "c1 b1 d1 a1", {5: 7, 7: 8, 8: 5}),
        ("a1 b1 a2", "b1 a1 a2 a3", {5: 6, 6: 5}),
    ],
)
def test_numbers_that_were_sent_come_back(sent: str, rows: str, numbers: dict[int, int]) -> None:
    """What was sent gets its number, the rest follows in its order, and the numbers as a whole stay the same."""
    found = matched(sent, rows)
    assert found.agrees
    assert found.new_numbers() == numbers
    assert sorted(numbers) == sorted(numbers.values())


def test_what_is_missing_is_told_apart_from_what_differs() -> None:
    """By key."""
    found = match(0, 4, 6, {5: effect(5, "a1"), 6: effect(6, "b1")}, [row(5, "b1", content=b"other", version="2")])
    assert [one.dedupe_key for one in found.missing] == ["a1"]
    assert [one.what for one in found.differences] == ["version is 2, sent was 1; the payload is another"]
    assert not found.agrees


@pytest.mark.parametrize(
    ("sent", "rows", "told"),
    [
        ("a1 a2", "a2 a1", "it was made before an effect of the same object"),
        ("a1 a2", "a1 a3 a2", "before it stands a3, which was never sent"),
    ],
)
def test_an_order_within_an_object_that_changed_differs(sent: str, rows: str, told: str) -> None:
    """Effects of one object go out in order, so another order is another history."""
    (difference,) = matched(sent, rows).differences
    assert told in difference.what


def test_a_digest_knows_neither_blanks_nor_the_balance_after() -> None:
    """It knows everything else."""
    one = '{"amount_minor": 5, "user_id": "u", "balance_after_minor": 7}'
    assert digest("balance_entry", one) == digest(
        "balance_entry", b'{"amount_minor":5,"user_id":"u","balance_after_minor":9}'
    )
    assert digest("balance_entry", one) != digest("balance_entry", one.replace("5", "6"))
    assert digest("hold_goods", one) == digest("hold_goods", one.replace(" ", ""))
    assert digest("hold_goods", one) != digest("hold_goods", one.replace("7", "9"))


@pytest.mark.parametrize(
    ("balance", "sent", "unsent", "announced"),
    [
        (130, [(100, 100), (20, 120)], [10], [130]),
        (30, [(20, 30)], [10], [10]),
        (38, [(20, 30)], [3, 10, 5], [33, 10, 38]),
        (0, [(10, 10)], [-10], [0]),
        (5, [], [2, 3], [2, 5]),
        (7, [(5, 9)], [-2], [7]),
        (7, [(5, 100)], [2], None),
        (50, [(20, 20), (-20, 0)], [50], [50]),
    ],
)
def test_announced_balances_join(
    balance: int, sent: list[tuple[int, int]], unsent: list[int], announced: list[int] | None
) -> None:
    """The steps lead from what was there before to the balance of today; None where they cannot."""
    assert fit(balance, sent, unsent) == announced


def test_the_search_for_an_order_ends() -> None:
    """However many ways there are."""
    assert fit(10**9, [(7, 3)], [2**n for n in range(29)]) is None
