"""The example consumers keep the two rules that the documents state."""

import importlib.util
import itertools
import sqlite3
from typing import Any

import msgspec
import pytest

from schemas.contracts import EXAMPLES
from schemas.effects import EFFECTS
from tests.unit.packaging.tree import ROOT

FOLDER = ROOT / "examples" / "consumer"


def _module(name: str) -> Any:
    """An example as a module; it is a program that people copy, not a part of the package."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def example() -> Any:
    """The warehouse's program."""
    return _module("warehouse")


@pytest.fixture
def wallet(database: sqlite3.Connection) -> Any:
    """A wallet that has seen nothing yet."""
    return _module("wallet").Wallet(database)


@pytest.fixture
def database() -> sqlite3.Connection:
    """The consumer's own database."""
    return sqlite3.connect(":memory:")


@pytest.fixture
def warehouse(example: Any, database: sqlite3.Connection) -> Any:
    """A warehouse that has seen nothing yet."""
    return example.Warehouse(database)


def _effect(name: str, version: int, subject: str = "dep_1") -> tuple[dict[str, str], dict[str, object]]:
    headers = {
        "ce_id": f"deposit:{subject}:{name}:{version}",
        "ce_type": name,
        "ce_subject": subject,
        "ce_version": str(version),
    }
    return headers, {"order_id": "ord_5", "status": "open", "reason": None, "message": None, "until": "tomorrow"}


RELEASE, HOLD = _effect("release_goods", 9), _effect("hold_goods", 12)


def test_goods_are_released_and_held_once(warehouse: Any, database: sqlite3.Connection) -> None:
    """In order both act; read again neither does."""
    assert [warehouse.take(*RELEASE), warehouse.take(*HOLD)] == [True, True]
    assert [warehouse.take(*RELEASE), warehouse.take(*HOLD)] == [False, False]
    assert database.execute("SELECT movement FROM goods").fetchall() == [("release_goods",), ("hold_goods",)]


def test_a_release_that_comes_after_its_hold_is_not_acted_on(warehouse: Any, database: sqlite3.Connection) -> None:
    """Rule 1; the hold itself always acts."""
    assert [warehouse.take(*HOLD), warehouse.take(*RELEASE)] == [True, False]
    assert database.execute("SELECT movement FROM goods").fetchall() == [("hold_goods",)]


def test_a_hold_of_another_deposit_holds_nothing_back(warehouse: Any) -> None:
    """Rule 1 goes by subject: the order may have two deposits."""
    assert warehouse.take(*_effect("hold_goods", 12, subject="dep_0"))
    assert warehouse.take(*RELEASE)


def test_the_newest_status_wins_in_every_order(example: Any) -> None:
    """Rule 2, across the topics of all status effects."""
    effects = [
        _effect("update_order_status", 1),
        _effect("show_pending_review", 4),
        _effect("show_late_slip", 7),
        _effect("fail_order", 8),
    ]
    for order in itertools.permutations(effects):
        database = sqlite3.connect(":memory:")
        warehouse = example.Warehouse(database)
        for effect in order:
            warehouse.take(*effect)
        assert database.execute("SELECT version, effect FROM shown").fetchall() == [(8, "fail_order")]


def test_one_deposits_failure_does_not_undo_anothers_release(warehouse: Any, database: sqlite3.Connection) -> None:
    """Two deposits of one order: the old one fails after the new one was released."""
    assert warehouse.take(*_effect("release_goods", 3, subject="dep_new"))
    assert warehouse.take(*_effect("fail_order", 5, subject="dep_old"))
    assert database.execute("SELECT subject, movement FROM goods").fetchall() == [("dep_new", "release_goods")]


def test_a_crash_while_acting_is_repeated_whole(warehouse: Any, database: sqlite3.Connection) -> None:
    """What is noted and what is done are one transaction: neither is left behind without the other."""
    headers, _ = RELEASE
    with pytest.raises(KeyError):
        warehouse.take(headers, {})
    assert database.execute("SELECT count(*) FROM done").fetchone() == (0,)
    assert warehouse.take(*RELEASE)


def _from_schema(name: str, version: int) -> tuple[dict[str, str], dict[str, Any]]:
    """The first example of the effect's contract, as a record."""
    headers = {"ce_id": f"{name}:{version}", "ce_type": name, "ce_subject": "wdr_1", "ce_version": str(version)}
    return headers, msgspec.to_builtins(EXAMPLES[name][0])


def test_a_withdrawals_money_moves_once(wallet: Any, database: sqlite3.Connection) -> None:
    """What was locked comes back, and a recalled chunk is compensated, whatever comes twice."""
    records = [_from_schema("refund_unfilled", 9), _from_schema("compensate_reversed_fill", 5)]
    assert [wallet.take(*record) for record in (*records, *records)] == [True, True, False, False]
    assert database.execute("SELECT movement, amount_minor FROM movements").fetchall() == [
        ("refund_unfilled", 30_803),
        ("compensate_reversed_fill", 30_000),
    ]


def test_a_withdrawals_newest_status_wins(wallet: Any, database: sqlite3.Connection) -> None:
    """An older progress is not shown after a newer status; closing is told once."""
    taken = [("update_local_status", 4), ("show_progress", 3), ("show_progress", 5), ("close_withdrawal", 7)]
    assert [wallet.take(*_from_schema(*effect)) for effect in taken] == [True, False, True, True]
    assert database.execute("SELECT version, text FROM shown").fetchall() == [(5, "700.00 of 1,000.00")]
    assert not wallet.take(*_from_schema("close_withdrawal", 7))


def test_every_effect_is_known_to_an_example(example: Any) -> None:
    """Together the examples subscribe to all effects there are."""
    wallet = _module("wallet")
    names = (*example.GOODS, *example.STATUS, *wallet.MONEY, *wallet.CLOSED, *wallet.STATUS)
    assert sorted(names) == sorted(EFFECTS)
