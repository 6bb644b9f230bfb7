"""What a running `up` tells the other commands, and whose keys are touched."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tallyhook.errors import UsageError
from tallyhook.gateway.signing import SigningKey
from tallyhook.operations.running_pipeline import described_file, own_keys_file, read_running
from tallyhook.settings import IngressSettings, load

KEY = SigningKey(b"k" * 32)
SAID = {
    "ingress_url": "http://127.0.0.1:8080",
    "signing_key": KEY.secret_text(),
    "database_url": "postgresql://u@127.0.0.1/d",
    "schema": "shop",
    "merchant_id": None,
    "public_keys_file": "/somewhere/public_keys",
}


def describe(state_dir: Path, said: object) -> None:
    """What an `up` writes."""
    described_file(state_dir).parent.mkdir(parents=True, exist_ok=True)
    described_file(state_dir).write_text(json.dumps(said))


def test_what_was_written_is_read(tmp_path: Path) -> None:
    """The door's whole URL; secrets are not shown."""
    describe(tmp_path, SAID)
    running = read_running(tmp_path)
    assert running.webhooks_url == "http://127.0.0.1:8080/webhooks"
    assert running.key.secret_text() == KEY.secret_text()
    assert (running.schema, running.merchant_id) == ("shop", None)
    assert running.public_keys_file == Path("/somewhere/public_keys")
    assert KEY.secret_text() not in repr(running)


@pytest.mark.parametrize(
    "said",
    [[], {}, SAID | {"signing_key": "whsk_x"}, {name: value for name, value in SAID.items() if name != "schema"}],
)
def test_what_is_no_description_is_refused(tmp_path: Path, said: object) -> None:
    """As wrong usage, without its secrets."""
    describe(tmp_path, said)
    with pytest.raises(UsageError) as refused:
        read_running(tmp_path)
    assert KEY.secret_text() not in str(refused.value)


def test_keys_that_were_given_are_their_owners(tmp_path: Path) -> None:
    """Only the state directory's own file takes keys of ours."""
    settings = load()
    plain = replace(settings, ingress=IngressSettings(public_keys=None, public_keys_file=None))
    assert own_keys_file(plain, tmp_path) == tmp_path / "keys" / "public_keys"
    for given in (IngressSettings(public_keys=KEY.public_text()), IngressSettings(public_keys_file=tmp_path / "mine")):
        assert own_keys_file(replace(settings, ingress=given), tmp_path) is None
