"""How `sign` and `send` take a key, and what they say when they cannot."""

from pathlib import Path

import pytest

from tallyhook.cli.signing_options import signing_key
from tallyhook.errors import UsageError
from tallyhook.gateway.signing import SigningKey
from tests.commands import run

KEY = SigningKey(bytes(range(32)))


def test_a_file_wins_over_the_variable(tmp_path: Path) -> None:
    """With blanks around the key."""
    path = tmp_path / "key"
    path.write_text(f"  {KEY.secret_text()}\n")
    assert signing_key(SigningKey.generate().secret_text(), path).key_id == KEY.key_id


WHOLE = KEY.secret_text()
BARE = WHOLE.removeprefix("whsk_")


@pytest.mark.parametrize("command", ["sign", "send"])
@pytest.mark.parametrize(
    "given",
    [WHOLE, f"./{WHOLE}", f"/tmp/{WHOLE}", WHOLE[:30], BARE, BARE.rstrip("=")],
    ids=["whole", "in this folder", "in a folder", "cut short", "without prefix", "without padding"],
)
def test_a_key_in_place_of_its_file_is_not_repeated(command: str, given: str, tmp_path: Path) -> None:
    """Neither with its prefix nor without, nor where it is cut short; the message says what to do."""
    event = tmp_path / "event.json"
    event.write_text('{"id":"evt_1"}')
    done = run((command, str(event), "--key-file", given), {})
    assert done.returncode == 2, done.stderr
    assert "looks like a key" in done.stderr
    assert "TALLYHOOK_SIGNING_KEY" in done.stderr
    assert BARE[:12] not in done.stdout + done.stderr


def test_a_key_with_slashes_is_a_key() -> None:
    """Base64 has slashes, which a path takes for folders."""
    given = "whsk_ab/c//def/" + "A" * 28 + "="
    with pytest.raises(UsageError, match="looks like a key") as caught:
        signing_key(None, Path(given))
    assert "AAAA" not in str(caught.value)
    bare = "ab/c/def/" + "A" * 34 + "="
    with pytest.raises(UsageError, match="looks like a key") as caught:
        signing_key(None, Path(bare))
    assert "AAAA" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """With the reason: it is missing, a folder, or no text."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe")
    for path, reason in (
        (tmp_path / "nothing", "No such file"),
        (tmp_path, "Is a directory"),
        (binary, "no text in UTF-8"),
    ):
        with pytest.raises(UsageError, match=reason) as caught:
            signing_key(None, path)
        assert str(path) in str(caught.value)


def test_a_file_named_like_a_key_is_read(tmp_path: Path) -> None:
    """Only what cannot be read is suspected."""
    path = tmp_path / "whsk_local"
    path.write_text(KEY.secret_text())
    assert signing_key(None, path).key_id == KEY.key_id
