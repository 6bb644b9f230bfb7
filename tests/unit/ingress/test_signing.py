"""The gateway's side: what it signs is accepted, and its secret stays its own."""

import base64

import pytest
from nacl.signing import VerifyKey

from tallyhook.errors import UsageError
from tallyhook.gateway.signing import SigningKey


def test_a_key_survives_its_text() -> None:
    """whsk_ text is the 32-byte seed; both halves come back."""
    key = SigningKey.generate()

    again = SigningKey.from_text(key.secret_text() + "\n")

    assert (key.public_text(), key.key_id) == (again.public_text(), again.key_id)
    assert base64.b64decode(key.secret_text().removeprefix("whsk_")) == base64.b64decode(
        again.secret_text().removeprefix("whsk_")
    )


def test_the_known_answer() -> None:
    """RFC 8032, section 7.1, test 1: the seed and its public key."""
    seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")

    assert SigningKey(seed).public_text() == "whpk_" + base64.b64encode(public).decode()


def test_the_signed_content_is_id_timestamp_body() -> None:
    """With dots between, over the raw bytes."""
    key = SigningKey(bytes(32))

    headers = key.sign("evt_1", 1_700_000_000, b"\x00\xff")

    signature = base64.b64decode(headers["webhook-signature"].removeprefix("v1a,"))
    public = base64.b64decode(key.public_text().removeprefix("whpk_"))
    VerifyKey(public).verify(b"evt_1.1700000000.\x00\xff", signature)
    assert (headers["webhook-id"], headers["webhook-timestamp"]) == ("evt_1", "1700000000")


def test_the_secret_does_not_show_itself() -> None:
    """Neither repr nor str."""
    key = SigningKey.generate()

    assert key.secret_text()[5:20] not in f"{key!r} {key} {vars(key)}"


@pytest.mark.parametrize("text", ["", "whsk_", "whpk_" + "A" * 43 + "=", "whsk_AAAA", "whsk_" + "A" * 42 + "!="])
def test_what_is_no_key_is_refused_without_repeating_it(text: str) -> None:
    """The message tells how to make one."""
    with pytest.raises(UsageError) as caught:
        SigningKey.from_text(text)

    assert "tallyhook keys generate" in str(caught.value)
    assert not text or text not in str(caught.value).replace("whsk_ and", "")


@pytest.mark.parametrize("message_id", ["e", "evt_1~!", "x" * 512])
def test_visible_ascii_is_a_webhook_id(message_id: str) -> None:
    """1 to 512 characters."""
    assert SigningKey(bytes(32)).sign(message_id, 1, b"")["webhook-id"] == message_id


@pytest.mark.parametrize(
    "message_id", ["", "x" * 513, "evt_ก", "evt_é", "evt 1", "evt_1\n", "evt_1\r\nx-more: 1", "evt_\x7f", "evt_\udcff"]
)
def test_what_a_header_cannot_carry_is_no_webhook_id(message_id: str) -> None:
    """The message says what to do, and can itself be printed anywhere."""
    with pytest.raises(UsageError, match="give --id with visible ASCII") as refused:
        SigningKey(bytes(32)).sign(message_id, 1, b"")
    assert str(refused.value).isprintable()
    assert str(refused.value).isascii()
