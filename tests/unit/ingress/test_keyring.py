"""Keys are read strictly, and read again without losing those that work."""

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingress.keyring import Keyring
from ingress.public_keys import KeyringError, parse_key
from tallyhook.gateway.signing import SigningKey

ONE, TWO = SigningKey(bytes(32)), SigningKey(bytes(range(32)))


def ids(keyring: Keyring) -> list[str]:
    """The ids of the active keys."""
    return [key.id for key in keyring.keys]


def test_an_id_is_given_or_the_fingerprint() -> None:
    """Both kinds may stand side by side."""
    keyring = Keyring(f"{ONE.public_text()}, two={TWO.public_text()}", None)

    assert ids(keyring) == [ONE.key_id, "two"]


@pytest.mark.parametrize(
    "entry",
    [
        "whsk_" + base64.b64encode(bytes(32)).decode(),
        "AAAA",
        "whpk_=",
        "whpk_" + base64.b64encode(bytes(31)).decode(),
        "whpk_" + base64.b64encode(b"\xff" * 32).decode(),
        "whpk_" + base64.b64encode(bytes(32)).decode(),
        "whpk_" + base64.b64encode((1).to_bytes(32, "little")).decode(),
        ONE.public_text().rstrip("="),
        "a b=" + ONE.public_text(),
        "=" + ONE.public_text(),
        "id" + ONE.public_text(),
    ],
    ids=["secret", "bare", "empty", "short", "no point", "order 4", "order 1", "unpadded", "bad id", "no id", "no ="],
)
def test_what_is_no_key_is_refused_without_repeating_it(entry: str) -> None:
    """A secret key that was put in the wrong place must not end in a log."""
    with pytest.raises(KeyringError) as caught:
        parse_key(entry, "TALLYHOOK_INGRESS_PUBLIC_KEYS, key 1")

    assert "TALLYHOOK_INGRESS_PUBLIC_KEYS, key 1" in str(caught.value)
    assert entry not in str(caught.value)


def test_no_key_at_all_is_refused() -> None:
    """A door that no one can pass is a mistake of the settings."""
    with pytest.raises(KeyringError, match="TALLYHOOK_INGRESS_PUBLIC_KEYS"):
        Keyring(None, None)


def test_one_id_for_two_keys_is_refused() -> None:
    """ce_keyid must tell which key vouched."""
    with pytest.raises(KeyringError, match="twice"):
        Keyring(f"k={ONE.public_text()},k={TWO.public_text()}", None)


def test_a_file_is_read_again_when_its_content_changes(tmp_path: Path) -> None:
    """Also through a link to a folder that is swapped, with the same size and times."""
    for name, key in (("a", ONE), ("b", TWO)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "keys").write_text(f"# {name}\n\n{key.public_text()}\n")
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "a")
    keyring = Keyring(None, link / "keys")
    assert not keyring.reload()

    link.unlink()
    link.symlink_to(tmp_path / "b")

    assert keyring.reload()
    assert ids(keyring) == [TWO.key_id]
    assert not keyring.reload()


@pytest.mark.parametrize("content", [b"", b"# only a comment\n", b"whpk_AAA", b"\xff\xfe", b"x" * 70_000])
def test_a_bad_file_keeps_the_old_keys_and_complains_once(tmp_path: Path, content: bytes) -> None:
    """Half-written files come and go; the door stays open to the keys it knows."""
    path = tmp_path / "keys"
    path.write_text(ONE.public_text())
    keyring = Keyring(f"listed={TWO.public_text()}", path)
    path.write_bytes(content)

    with pytest.raises(KeyringError):
        keyring.reload()
    assert not keyring.reload()
    assert ids(keyring) == ["listed", ONE.key_id]

    path.write_text(ONE.public_text())
    keyring.reload()
    assert ids(keyring) == ["listed", ONE.key_id]


def test_a_vanished_file_keeps_the_old_keys(tmp_path: Path) -> None:
    """A link may lead nowhere for a moment while it is swapped."""
    path = tmp_path / "keys"
    path.write_text(ONE.public_text())
    keyring = Keyring(None, path)
    path.unlink()

    with pytest.raises(KeyringError, match="No such file"):
        keyring.reload()
    assert ids(keyring) == [ONE.key_id]


def test_a_missing_file_at_the_start_is_a_wrong_setting(tmp_path: Path) -> None:
    """The message names variable and path."""
    with pytest.raises(KeyringError, match=r"TALLYHOOK_INGRESS_PUBLIC_KEYS_FILE=.*nothing"):
        Keyring(None, tmp_path / "nothing")


def test_the_keys_that_vouch_change_with_time_alone(tmp_path: Path) -> None:
    """The old key ends and the new one begins without anybody touching the file."""
    path = tmp_path / "keys.toml"
    path.write_text(
        f'[[key]]\nid = "old"\npublic = "{ONE.public_text()}"\nnot_after = 2026-03-01T07:00:00+07:00\n'
        f'[[key]]\nid = "new"\npublic = "{TWO.public_text()}"\nnot_before = 2026-02-01T00:00:00Z\n'
    )
    keyring = Keyring(None, path)
    ends = datetime(2026, 3, 1, tzinfo=UTC)

    def valid(moment: datetime) -> list[str]:
        return [key.id for key in keyring.valid_at(moment)]

    assert valid(datetime(2026, 1, 31, 23, 59, 59, tzinfo=UTC)) == ["old"]
    assert valid(datetime(2026, 2, 1, tzinfo=UTC)) == ["old", "new"]
    assert valid(ends) == ["old", "new"]
    assert valid(ends + timedelta(microseconds=1)) == ["new"]
    assert ids(keyring) == ["old", "new"]


def test_a_changed_window_is_a_change(tmp_path: Path) -> None:
    """The same key and id with another end."""
    path = tmp_path / "keys.toml"
    path.write_text(f'[[key]]\npublic = "{ONE.public_text()}"\n')
    keyring = Keyring(None, path)

    path.write_text(f'[[key]]\npublic = "{ONE.public_text()}"\nnot_after = 2026-03-01T00:00:00Z\n')

    assert keyring.reload()
    assert keyring.keys[0].not_after == datetime(2026, 3, 1, tzinfo=UTC)


def test_the_same_key_with_two_windows_is_refused(tmp_path: Path) -> None:
    """One of the two would be the wrong one."""
    path = tmp_path / "keys.toml"
    path.write_text(f'[[key]]\npublic = "{ONE.public_text()}"\nnot_after = 2026-03-01T00:00:00Z\n')

    with pytest.raises(KeyringError, match="twice"):
        Keyring(ONE.public_text(), path)


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 5, 6, 7, 8, 9])
def test_a_half_written_table_keeps_the_old_keys(tmp_path: Path, cut: int) -> None:
    """Wherever the second table is cut, nothing of the file is taken."""
    path = tmp_path / "keys.toml"
    whole = f'[[key]]\npublic = "{ONE.public_text()}"\n'
    path.write_text(whole)
    keyring = Keyring(None, path)
    second = f'[[key]]\nid = "two"\npublic = "{TWO.public_text()}"\n'
    path.write_text(whole + second[: len(second) * cut // 10])

    with pytest.raises(KeyringError):
        keyring.reload()
    assert ids(keyring) == [ONE.key_id]


@pytest.mark.parametrize(
    ("tables", "until"),
    [
        ("", None),
        ("not_after = 2026-03-01T00:00:00Z\n", datetime(2026, 3, 1, tzinfo=UTC)),
        ("not_before = 2026-06-01T00:00:00Z\n", datetime(2026, 2, 1, tzinfo=UTC)),
        ("not_after = 2026-01-01T00:00:00Z\n", datetime(2026, 2, 1, tzinfo=UTC)),
        ("not_after = 2026-03-01T00:00:00Z\nTWO not_before = 2026-02-20T00:00:00Z\n", None),
        (
            "not_after = 2026-03-01T00:00:00Z\nTWO not_before = 2026-03-01T00:00:00Z\nnot_after = 2026-05-01T00:00:00Z",
            datetime(2026, 5, 1, tzinfo=UTC),
        ),
        (
            "not_after = 2026-03-01T00:00:00Z\nTWO not_before = 2026-03-02T00:00:00Z\n",
            datetime(2026, 3, 1, tzinfo=UTC),
        ),
        ("not_after = 2026-03-01T00:00:00Z\nTWO test_only = true\n", datetime(2026, 3, 1, tzinfo=UTC)),
        ("test_only = true\n", None),
    ],
    ids=["no end", "an end", "not begun", "ended", "overlap", "chain", "hole", "a test key beside", "a test key alone"],
)
def test_the_moment_when_nobody_vouches_any_more(tmp_path: Path, tables: str, until: datetime | None) -> None:
    """Seen from 1 February: windows that follow each other without a hole count as one."""
    path = tmp_path / "keys.toml"
    first, _, second = tables.partition("TWO ")
    text = f'[[key]]\nid = "one"\npublic = "{ONE.public_text()}"\n{first}'
    if second:
        text += f'[[key]]\nid = "two"\npublic = "{TWO.public_text()}"\n{second}'
    path.write_text(text)

    assert Keyring(None, path).vouches_until(datetime(2026, 2, 1, tzinfo=UTC)) == until
