"""How a row or an effect is compared with what it must be: the sentences that all kinds of objects share."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields

from schemas.effects import BALANCE_ENTRY
from tallyhook.gateway.world.ending import ExpectedEffect, ExpectedFill, ExpectedTombstone
from tallyhook.gateway.world.stored import Row


def compare_members(what: str, row: Row, members: Mapping[str, object]) -> Iterator[str]:
    """A sentence for each column that holds another value; a set stands for every value that is right.

    Args:
        what: the object, such as `Deposit dep_1`.
        members: column -> value.
    """
    for name, must in members.items():
        held = row[name]
        right = held in must if isinstance(must, frozenset) else held == must
        if not right:
            yield f"{what}: {name} is {held!r}, must be {_shown(must)}."


def members_of(entity: object, names: Iterable[str]) -> dict[str, object]:
    """The named members of an expected row; a column and its member have the same name."""
    return {name: getattr(entity, name) for name in names}


def compare_facts(
    what: str, key: str, rows: Iterable[Row], must: Mapping[str, ExpectedFill | ExpectedTombstone]
) -> Iterator[str]:
    """Append-only facts: each that must be there is, as it was told, and no other.

    Args:
        key: the column that names a fact.
        must: key -> expected fact, whose members are named as the columns.
    """
    held = {str(row[key]): row for row in rows}
    for name in sorted(must.keys() - held.keys()):
        yield f"{what}: {key} {name} is not there, must be {must[name]}."
    for name in sorted(held.keys() - must.keys()):
        yield f"{what}: {key} {name} is there ({dict(held[name])}), must not be."
    for name in sorted(must.keys() & held.keys()):
        columns = [field.name for field in fields(must[name])]
        yield from compare_members(f"{what}, {key} {name}", held[name], members_of(must[name], columns))


def compare_effects(what: str, rows: Iterable[Row], effects: Iterable[ExpectedEffect]) -> Iterator[str]:
    """Certain effects are there, those that may be are right where they are, and no other is; entries are left out."""
    allowed = {effect.dedupe_key: effect for effect in effects}
    held = {str(row["dedupe_key"]): row for row in rows if row["topic"] != BALANCE_ENTRY}
    for key, effect in allowed.items():
        if key not in held:
            if effect.certain:
                yield f"{what}: effect {key} is not there, must be {dict(effect.payload)}."
            continue
        yield from compare_members(
            f"{what}, effect {key}", held[key], {"topic": effect.effect, "payload": dict(effect.payload)}
        )
    for key in sorted(held.keys() - allowed.keys()):
        yield f"{what}: effect {key} is there ({held[key]['payload']}), must not be."


def _shown(must: object) -> str:
    return " or ".join(sorted(repr(value) for value in must)) if isinstance(must, frozenset) else repr(must)
