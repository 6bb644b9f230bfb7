"""`tallyhook up` with endpoints that the door would refuse ends at once instead of starting it again and again."""

from pathlib import Path

import pytest

from tallyhook.gateway.signing import SigningKey
from tests.commands import run


@pytest.fixture
def endpoints(tmp_path: Path) -> Path:
    """A file with the endpoint `default` and a key for it."""
    (tmp_path / "keys").write_text(f"shop={SigningKey.generate().public_text()}\n")
    path = tmp_path / "endpoints.toml"
    path.write_text('[[endpoint]]\nname = "default"\nkeyring = "keys"\n')
    return path


def refused(endpoints: Path, **more: str) -> str:
    """What `up` says when it ends with 2; nothing may have been started, and no folder made."""
    state = endpoints.parent / "state"
    done = run(("up", "--state-dir", str(state)), {"TALLYHOOK_INGRESS_ENDPOINTS_FILE": str(endpoints), **more})
    assert done.returncode == 2, done.stdout + done.stderr
    assert not state.exists()
    return " ".join(done.stderr.split())


def test_a_file_that_names_default_collides_with_the_local_key(endpoints: Path) -> None:
    """The message names the file and both ways out."""
    said = refused(endpoints)
    assert f"TALLYHOOK_INGRESS_ENDPOINTS_FILE={endpoints}" in said
    assert "default is given twice, here and by `tallyhook up`" in said
    assert "another name" in said
    assert "`tallyhook ingress`" in said


def test_a_file_that_names_default_collides_with_given_keys(endpoints: Path) -> None:
    """The message names the variable that makes the other one."""
    said = refused(endpoints, TALLYHOOK_INGRESS_PUBLIC_KEYS=SigningKey.generate().public_text())
    assert "default is given twice (TALLYHOOK_INGRESS_PUBLIC_KEYS makes one, too)" in said
    assert "leave the variable out" in said


def test_a_file_that_is_missing_is_named(endpoints: Path) -> None:
    """So is any other fault of it."""
    endpoints.unlink()
    assert f"TALLYHOOK_INGRESS_ENDPOINTS_FILE={endpoints}: No such file" in refused(endpoints)


def test_keys_that_are_none_are_refused(endpoints: Path) -> None:
    """Without an endpoints file, too; no part of the value is shown."""
    state = endpoints.parent / "state"
    done = run(("up", "--state-dir", str(state)), {"TALLYHOOK_INGRESS_PUBLIC_KEYS": "whsk_hunter2"})
    assert done.returncode == 2, done.stdout + done.stderr
    assert "TALLYHOOK_INGRESS_PUBLIC_KEYS" in done.stderr
    assert "hunter2" not in done.stderr
    assert not state.exists()
