"""Several endpoints in one process: each has its own keys, merchant, scheme and limits."""

import base64
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import Message
from nacl.signing import SigningKey as Ed25519Key

from schemas.topics import TopicNames
from tallyhook.gateway.signing import SigningKey
from tests.integration.ingress.conftest import Start
from tests.integration.ingress.events import event, headers_of
from tests.integration.ingress.process import Answer, IngressProcess

Records = Callable[[str], list[Message]]
LIVE, TEST, OLD = SigningKey(bytes([1] * 32)), SigningKey(bytes([2] * 32)), SigningKey(bytes([3] * 32))
RAW = Ed25519Key(bytes([4] * 32))


def write_files(folder: Path, *, old_ends_at: datetime) -> Path:
    """Three endpoints: `shop` with three keys, `raw` with another scheme, `other` with another merchant."""
    tables = [
        f'[[key]]\nid = "live"\npublic = "{LIVE.public_text()}"\n',
        f'[[key]]\nid = "test"\npublic = "{TEST.public_text()}"\ntest_only = true\n',
        f'[[key]]\nid = "old"\npublic = "{OLD.public_text()}"\nnot_after = {old_ends_at.isoformat()}\n',
    ]
    (folder / "shop.toml").write_text("".join(tables))
    raw = "whpk_" + base64.b64encode(bytes(RAW.verify_key)).decode()
    (folder / "raw-keys").write_text(f"raw={raw}\n")
    path = folder / "endpoints.toml"
    path.write_text(
        '[[endpoint]]\nname = "shop"\nkeyring = "shop.toml"\nmerchant = "mer_1"\n'
        '[[endpoint]]\nname = "raw"\nscheme = "raw-body"\nkeyring = "raw-keys"\nmerchant = "mer_1"\n'
        'signature_header = "X-Signature"\nsignature_encoding = "hex"\nmax_body_bytes = 2000\n'
        '[[endpoint]]\nname = "other"\nkeyring = "shop.toml"\nmerchant = "mer_2"\ntolerance_seconds = 1000\n'
    )
    return path


@pytest.fixture
def many(topics: TopicNames, start: Start, tmp_path: Path) -> IngressProcess:
    """An ingress with those endpoints beside the default one."""
    path = write_files(tmp_path, old_ends_at=datetime.now(UTC) + timedelta(days=1))
    return start(TALLYHOOK_INGRESS_ENDPOINTS_FILE=str(path))


def post_raw(ingress: IngressProcess, body: bytes, **headers: str) -> Answer:
    """Signs the bytes alone."""
    proof = {"x-signature": RAW.sign(body).signature.hex()}
    return ingress.request("POST", "/webhooks/raw", body, proof | headers)


def test_each_endpoint_takes_its_own_keys_alone(many: IngressProcess, topics: TopicNames, records: Records) -> None:
    """What one gateway account signed is nothing at another's path."""
    assert many.post(event("evt_1")).status == 200
    assert many.post(event("evt_2"), path="/webhooks/shop", key=LIVE).status == 200
    assert many.post(event("evt_3"), path="/webhooks/shop").status == 401
    assert many.post(event("evt_4"), key=LIVE).status == 401
    assert many.post(event("evt_5"), path="/webhooks/raw", key=LIVE).status == 401
    assert many.post(event("evt_6"), path="/webhooks/none", key=LIVE).status == 404

    found = {headers_of(record)["ce_id"]: headers_of(record)["ce_keyid"] for record in records(topics.events)}
    assert found == {"evt_1": "k1", "evt_2": "live"}


def test_each_endpoint_has_its_merchant_and_its_tolerance(
    many: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """The same keys at another path are another merchant's."""
    body = event(account={"merchant_id": "mer_2"})
    old = int(time.time()) - 600

    assert many.post(body, path="/webhooks/other", key=LIVE, timestamp=old).status == 200
    assert many.post(event("evt_2"), path="/webhooks/shop", key=LIVE, timestamp=old).status == 401
    assert many.post(event("evt_3"), path="/webhooks/other", key=LIVE).status == 200

    assert [body] == [record.value() for record in records(topics.events)]
    [letter] = records(topics.dead_letters)
    assert (headers_of(letter)["ce_reason"], headers_of(letter)["ce_id"]) == ("envelope_merchant", "evt_3")
    logged = many.await_log("dead letter")
    assert (logged["endpoint"], logged["message_id"]) == ("other", "evt_1")


def test_a_raw_body_is_proved_by_its_bytes_alone(many: IngressProcess, topics: TopicNames, records: Records) -> None:
    """No id, no time; the proof stays with the record, and logs name the event's own id."""
    body = event("evt_raw")
    assert post_raw(many, body).status == 200
    assert post_raw(many, body + b" ", **{"x-signature": RAW.sign(body).signature.hex()}).status == 401
    assert post_raw(many, b"{}", **{"x-signature": "00"}).status == 401
    assert post_raw(many, event("evt_bad", version="1")).status == 200

    [record] = records(topics.events)
    headers = headers_of(record)
    assert (headers["ce_keyid"], headers["ce_id"]) == ("raw", "evt_raw")
    assert not [name for name in headers if name.startswith("webhook-")]
    RAW.verify_key.verify(record.value() or b"", bytes.fromhex(headers["x-signature"]))
    assert many.await_log("dead letter")["message_id"] == "evt_bad"


def test_each_endpoint_has_its_own_limit_of_bodies(many: IngressProcess) -> None:
    """Counted while it is read, whoever reads more elsewhere."""
    body = event(note="x" * 3000)

    assert post_raw(many, body).status == 413
    assert many.post(body, path="/webhooks/shop", key=LIVE).status == 200


def test_a_key_for_tests_never_vouches_for_real_money(
    many: IngressProcess, topics: TopicNames, records: Records
) -> None:
    """Refused like a forgery, with a reason of its own; nothing of it is published, not even as a dead letter."""
    live_events = [event("evt_1"), event("evt_2", version="1"), event("evt_3", livemode="false"), b"no JSON"]
    answers = [many.post(body, path="/webhooks/shop", key=TEST) for body in live_events]
    forged = many.post(event(), path="/webhooks/shop")

    assert {(401, forged.body)} == {(answer.status, answer.body) for answer in answers}
    assert many.metric("tallyhook_ingress_refused_total", reason="test_key") == 4
    assert records(topics.events) + records(topics.dead_letters) == []

    assert many.post(event("evt_5", livemode=False), path="/webhooks/shop", key=TEST).status == 200
    assert many.post(event("evt_6", livemode=False), path="/webhooks/shop", key=LIVE).status == 200
    found = records(TopicNames(f"{topics.prefix}.test").events)
    assert {headers_of(record)["ce_keyid"] for record in found} == {"test", "live"}


def test_a_key_ends_by_the_clock_alone(topics: TopicNames, start: Start, records: Records, tmp_path: Path) -> None:
    """Without a restart and without a change of the file; the gauge and the log tell."""
    ends_at = datetime.now(UTC) + timedelta(seconds=8)
    path = write_files(tmp_path, old_ends_at=ends_at)
    ingress = start(
        TALLYHOOK_INGRESS_ENDPOINTS_FILE=str(path),
        TALLYHOOK_INGRESS_PUBLIC_KEYS="",
        TALLYHOOK_INGRESS_KEY_RELOAD_SECONDS="0.2",
    )
    deadline = ends_at + timedelta(seconds=15)
    before = [ingress.post(event("evt_1"), path="/webhooks/shop", key=OLD).status]
    asked_by = datetime.now(UTC)
    while (status := ingress.post(event("evt_2"), path="/webhooks/shop", key=OLD).status) == 200:
        assert datetime.now(UTC) < deadline
        time.sleep(0.1)

    assert (status, datetime.now(UTC) > ends_at) == (401, True)
    assert before == [200] or asked_by > ends_at
    assert ingress.metric("tallyhook_ingress_refused_total", reason="key_window") == 1
    assert ingress.post(event("evt_3"), path="/webhooks/shop", key=LIVE).status == 200
    while ingress.metric("tallyhook_ingress_keys", endpoint="shop") != 2:
        assert datetime.now(UTC) < deadline
        time.sleep(0.1)
    assert ingress.request("POST", "/webhooks", b"x").status == 404


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('[[endpoint]]\nname = "a"\nkeyring = "nothing"\n', ", [[endpoint]] 1, keyring="),
        ('[[endpoint]]\nname = "a"\nkeyring = "shop.toml"\nmerchnat = "m"\n', ", [[endpoint]] 1, merchnat: is unknown"),
        ('[[endpoint]]\nname = "default"\nkeyring = "shop.toml"\n', ", [[endpoint]] 1, name: default is given twice"),
    ],
)
def test_a_wrong_file_ends_the_process_at_once(start: Start, tmp_path: Path, content: str, named: str) -> None:
    """Exit code 2; the message names file, table and member."""
    path = write_files(tmp_path, old_ends_at=datetime.now(UTC))
    path.write_text(content)
    ingress = start(ready=False, TALLYHOOK_INGRESS_ENDPOINTS_FILE=str(path))

    assert ingress.wait() == 2
    assert f"{path}{named}" in ingress.await_log("ended")["reason"]


def test_the_example_is_a_file_that_works(topics: TopicNames, start: Start, tmp_path: Path) -> None:
    """`examples/endpoints.toml` as it stands, with keys where it says they are."""
    example = Path(__file__).parents[3] / "examples" / "endpoints.toml"
    (tmp_path / "endpoints.toml").write_bytes(example.read_bytes())
    (tmp_path / "keys").mkdir()
    keys = (example.parent / "keyring.toml").read_text()
    for name in ("shop.toml", "payouts.toml"):
        (tmp_path / "keys" / name).write_text(keys)
    ingress = start(TALLYHOOK_INGRESS_ENDPOINTS_FILE=str(tmp_path / "endpoints.toml"), TALLYHOOK_INGRESS_PUBLIC_KEYS="")

    shown = [line for line in ingress.log_lines() if line["event"] == "endpoint"]
    assert {path for line in shown for path in line["paths"]} == {"/webhooks/shop", "/webhooks/payouts"}
    assert "whpk_" not in json.dumps(ingress.lines)
