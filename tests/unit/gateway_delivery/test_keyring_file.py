"""The keyring file that the receiver reads: ours are added, others stay, ingress reads it."""

import stat
from pathlib import Path

import pytest

from ingress.keyring import Keyring
from tallyhook.errors import TallyhookError, UsageError
from tallyhook.gateway.rotation import publish_keys
from tallyhook.gateway.signing import SigningKey

FIRST, SECOND = SigningKey(b"a" * 32), SigningKey(b"b" * 32)


def publics(path: Path) -> set[str]:
    """What ingress makes of the file."""
    return {key.id for key in Keyring(None, path).keys}


def test_both_keys_stand_in_a_new_file(tmp_path: Path) -> None:
    """In a folder that is made."""
    path = tmp_path / "new" / "public_keys"
    publish_keys(path, [FIRST, SECOND])
    assert publics(path) == {f"sim-{FIRST.key_id}", f"sim-{SECOND.key_id}"}


def test_keys_that_are_there_stay_and_none_is_given_twice(tmp_path: Path) -> None:
    """A running door that reads the file again finds the second key beside its own; the mode stays."""
    path = tmp_path / "public_keys"
    path.write_text(f"# ours\nlocal={FIRST.public_text()}")
    path.chmod(0o640)
    door = Keyring(None, path)
    publish_keys(path, [FIRST, SECOND])
    publish_keys(path, [FIRST, SECOND])
    assert door.reload()
    assert [key.id for key in door.keys] == ["local", f"sim-{SECOND.key_id}"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_text().startswith("# ours\n")
    assert [found.name for found in tmp_path.iterdir()] == ["public_keys"]


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """Tables, and what holds no public key at all: a mistyped path must not cost a file."""
    tables = tmp_path / "keys.toml"
    tables.write_text(f'[[key]]\nid = "a"\npublic = "{FIRST.public_text()}"\n')
    other = tmp_path / "notes"
    other.write_text("milk, bread")
    for path in (tables, other):
        before = path.read_text()
        with pytest.raises(UsageError, match=path.name):
            publish_keys(path, [FIRST, SECOND])
        assert path.read_text() == before
    with pytest.raises(TallyhookError, match="cannot be used"):
        publish_keys(tmp_path, [FIRST])
