"""Files of public keys: both forms are read strictly, and a fault is named with file, table and member."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingress.key_file import parse
from ingress.public_keys import KeyringError, PublicKey
from tallyhook.gateway.signing import SigningKey

ONE, TWO = SigningKey(bytes(32)), SigningKey(bytes(range(32)))
PATH = Path("/etc/keys")
TOML = Path("/etc/keys.toml")


def keys(content: str, path: Path = TOML) -> list[PublicKey]:
    """The keys of a file."""
    return [key for _, key in parse(content.encode(), path)]


def table(*lines: str, public: str = ONE.public_text()) -> str:
    """One [[key]] with these further lines."""
    return "\n".join(["[[key]]", f'public = "{public}"', *lines, ""])


def test_every_member_is_read() -> None:
    """A key without an id is named by its fingerprint; an offset is honoured."""
    given = table(
        'id = "2026-a"',
        "not_before = 2026-01-01T00:00:00Z",
        "not_after = 2026-06-01T07:00:00+07:00",
        "test_only = true",
    )

    first, second = keys(given + table(public=TWO.public_text()))

    assert (first.id, bytes(first.key), first.test_only) == ("2026-a", bytes(first.key), True)
    assert (first.not_before, first.not_after) == (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))
    assert second == PublicKey(TWO.key_id, second.key)


@pytest.mark.parametrize("beginning", ["", "# a comment\n\n", "   \n\t# x\r\n  "])
def test_tables_are_known_by_their_beginning(beginning: str) -> None:
    """A secret's file may have any name."""
    assert [key.id for key in keys(beginning + table('id = "k"'), PATH)] == ["k"]
    assert [key.id for key in keys(f"{beginning}k={ONE.public_text()}\n", PATH)] == ["k"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "/etc/keys.toml: holds no table [[key]]"),
        (ONE.public_text(), "/etc/keys.toml: not TOML (at "),
        ("key = []", "/etc/keys.toml: holds no table [[key]]"),
        ("key = 1", "/etc/keys.toml: holds no table [[key]]"),
        ("[key]\n", "/etc/keys.toml: holds no table [[key]]"),
        (table() + "[[keys]]\n", "/etc/keys.toml, keys: is unknown"),
        ("[[key]]\n", "/etc/keys.toml, [[key]] 1, public: is missing"),
        (table() + table("not-after = 2026-01-01T00:00:00Z"), "/etc/keys.toml, [[key]] 2, not-after: is unknown"),
        (table('id = "a b"'), "/etc/keys.toml, [[key]] 1, id: must be 1 to 64"),
        (table("id = 7"), "/etc/keys.toml, [[key]] 1, id: must be 1 to 64"),
        (table("not_after = 2026-01-01"), "/etc/keys.toml, [[key]] 1, not_after: must be a date and time"),
        (table("not_after = 2026-01-01T00:00:00"), "/etc/keys.toml, [[key]] 1, not_after: must be a date and time"),
        (table('not_before = "2026-01-01T00:00:00Z"'), "/etc/keys.toml, [[key]] 1, not_before: must be a date"),
        (table("test_only = 1"), "/etc/keys.toml, [[key]] 1, test_only: must be true or false"),
        (
            table("not_before = 2026-01-01T00:00:00Z", "not_after = 2026-01-01T00:00:00Z"),
            "/etc/keys.toml, [[key]] 1, not_after: must be later",
        ),
        (table(public="whpk_AAAA"), "/etc/keys.toml, [[key]] 1, public: after whpk_"),
        (table(public=ONE.secret_text()), "/etc/keys.toml, [[key]] 1, public: a key starts with whpk_"),
        ("[[key]]\npublic = 7\n", "/etc/keys.toml, [[key]] 1, public: must be a text"),
        (table() * 65, "/etc/keys.toml: 65 tables [[key]]; at most 64"),
        ("key = " + "[" * 10_000, "/etc/keys.toml: not TOML (somewhere)"),
        ("key = " + "7" * 10_000, "/etc/keys.toml: not TOML (somewhere)"),
        (table("not_after = 2026-02-30T00:00:00Z"), "/etc/keys.toml: not TOML ("),
        ("#" * 70_000, "/etc/keys.toml: larger than 65536 bytes"),
    ],
)
def test_a_fault_is_named_with_its_place(content: str, message: str) -> None:
    """File, table and member; never a key, which could be a secret one in the wrong place."""
    with pytest.raises(KeyringError) as caught:
        keys(content)

    assert str(caught.value).startswith(message)
    assert ONE.secret_text() not in str(caught.value)
    assert ONE.public_text() not in str(caught.value)


EARLY = "not_after = 0001-01-01T00:00:00+14:00\n"
PIECES = st.sampled_from([table(), table("test_only = true"), "[[key]]", "\n", "id = 'x'\n", EARLY, "[", "'"])


@given(st.lists(PIECES | st.binary(max_size=5).map(lambda raw: raw.decode("latin-1")), max_size=12), st.booleans())
def test_whatever_stands_in_it_there_are_keys_or_one_kind_of_error(pieces: list[str], toml: bool) -> None:
    """A file is read again while the process runs: any other error would end it."""
    try:
        found = keys("".join(pieces), TOML if toml else PATH)
    except KeyringError:
        return
    assert found
    assert {type(key.valid_at(datetime.now(UTC))) for key in found} == {bool}


def test_a_secret_as_a_members_name_is_not_repeated() -> None:
    """Somebody may paste it anywhere."""
    with pytest.raises(KeyringError) as caught:
        keys(f'"{ONE.secret_text()}" = 1\n')

    assert ONE.secret_text()[5:20] not in str(caught.value)
