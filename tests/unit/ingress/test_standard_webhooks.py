"""The signature scheme refuses everything that was not signed exactly so."""

import base64
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import VerifyKey

from ingress.messages import Head, Request
from ingress.public_keys import PublicKey, parse_key
from ingress.refusals import Refused
from ingress.schemes.standard_webhooks import StandardWebhooks
from tallyhook.gateway.signing import SigningKey
from tests.unit.ingress.requests import NOW, at, request, signed, with_header

KEY = SigningKey(bytes(range(32)))
PUBLIC = parse_key(f"k1={KEY.public_text()}", "here")
OTHER = parse_key(SigningKey(bytes(32)).public_text(), "here")
SCHEME = StandardWebhooks(tolerance_seconds=300, max_signatures=16, max_id_bytes=512)
ORDER = 2**252 + 27742317777372353535851937790883648493
BODY = b'{"id":"evt_1"}'


def reason_of(candidate: Request, keys: tuple[PublicKey, ...] = (PUBLIC,), now: float = NOW) -> str:
    """Why a request is refused; fails when it is not."""
    with pytest.raises(Refused) as caught:
        SCHEME.verify(candidate, keys, at(now))
    return caught.value.reason


@given(body=st.binary(max_size=200), message_id=st.text("abc_.-09", min_size=1, max_size=40))
def test_what_was_signed_is_vouched_for(body: bytes, message_id: str) -> None:
    """Any body and id; the key that fits is named, wherever it stands among the keys."""
    vouched = SCHEME.verify(signed(KEY, body, message_id=message_id), (OTHER, PUBLIC), at(NOW))

    assert (vouched.key.id, vouched.message_id) == ("k1", message_id)


@given(body=st.binary(min_size=1, max_size=200), data=st.data())
def test_a_flipped_bit_of_the_body_is_refused(body: bytes, data: st.DataObject) -> None:
    """Every bit of the body is signed."""
    original = signed(KEY, body)
    changed = bytearray(body)
    changed[data.draw(st.integers(0, len(body) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    assert reason_of(Request(original.head, bytes(changed))) == "signature"


@given(position=st.integers(0, 63), bit=st.integers(0, 7))
def test_a_flipped_bit_of_the_signature_is_refused(position: int, bit: int) -> None:
    """Every bit of the signature counts."""
    original = signed(KEY, BODY)
    signature = bytearray(base64.b64decode(original.head.all(b"webhook-signature")[0][4:]))
    signature[position] ^= 1 << bit

    assert reason_of(with_signature(original, bytes(signature))) == "signature"


@given(name=st.sampled_from([b"webhook-id", b"webhook-timestamp"]), data=st.data())
def test_a_changed_character_of_id_or_timestamp_is_refused(name: bytes, data: st.DataObject) -> None:
    """Both are signed with the body."""
    original = signed(KEY, BODY)
    value = original.head.all(name)[0]
    at = data.draw(st.integers(0, len(value) - 1))
    digit = data.draw(st.sampled_from("0123456789").filter(lambda d: d.encode() != value[at : at + 1]))
    changed = value[:at] + digit.encode() + value[at + 1 :]

    assert reason_of(with_header(original, name, changed)) == "signature"


def with_signature(original: Request, signature: bytes) -> Request:
    """The request with another signature, well encoded."""
    return with_header(original, b"webhook-signature", b"v1a," + base64.b64encode(signature))


def test_a_malleated_signature_is_refused() -> None:
    """S + L satisfies the same equation; accepting it would give one message two signatures."""
    original = signed(KEY, BODY)
    signature = base64.b64decode(original.head.all(b"webhook-signature")[0][4:])
    scalar = int.from_bytes(signature[32:], "little") + ORDER

    assert reason_of(with_signature(original, signature[:32] + scalar.to_bytes(32, "little"))) == "signature"


def test_a_key_of_small_order_vouches_for_nothing() -> None:
    """With such a key one signature would fit many messages."""
    for point in (
        bytes(32),
        (1).to_bytes(32, "little"),
        bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    ):
        weak = PublicKey("weak", VerifyKey(point))
        signature = (1).to_bytes(32, "little") + bytes(32)
        assert reason_of(with_signature(signed(KEY, BODY), signature), (weak,)) == "signature"


@pytest.mark.parametrize("length", [0, 1, 32, 63, 65, 96, 128])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    """It is refused like any other, not by an unforeseen error."""
    assert reason_of(with_signature(signed(KEY, BODY), bytes(length))) == "signature"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.rstrip(b"="),
        lambda text: text + b"=",
        lambda text: text + b"\t",
        lambda text: text.replace(b"=", b"%3d"),
        lambda text: text[:10] + b"\n" + text[10:],
        lambda text: b"\xe9\xff" + text,
        lambda _: base64.urlsafe_b64encode(b"\xff" * 64),
        lambda text: text[:-3] + bytes([text[-3] + 1]) + b"==",
        lambda _: b"",
    ],
    ids=["unpadded", "overpadded", "tab", "escaped", "newline", "bytes", "urlsafe", "stray bits", "empty"],
)
def test_base64_has_one_spelling(spoil: "object") -> None:
    """Other alphabets, missing padding, stray bits and foreign characters are refused."""
    assert callable(spoil)
    original = signed(KEY, BODY)
    value = original.head.all(b"webhook-signature")[0]

    assert reason_of(with_header(original, b"webhook-signature", b"v1a," + spoil(value[4:]))) == "signature"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        (b"webhook-id", b"", "id"),
        (b"webhook-id", b"a b", "id"),
        (b"webhook-id", b"\xe9", "id"),
        (b"webhook-id", b"x" * 513, "id"),
        (b"webhook-timestamp", b"", "timestamp_malformed"),
        (b"webhook-timestamp", b"-1", "timestamp_malformed"),
        (b"webhook-timestamp", b"+1700000000", "timestamp_malformed"),
        (b"webhook-timestamp", b"1700000000.5", "timestamp_malformed"),
        (b"webhook-timestamp", "१७".encode(), "timestamp_malformed"),
        (b"webhook-timestamp", b"9" * 13, "timestamp_malformed"),
        (b"webhook-signature", b" ".join([b"v1a,AAAA"] * 17), "signature"),
        (b"webhook-signature", b"v1,c2FtZQ==", "signature"),
    ],
)
def test_malformed_headers_are_refused(name: bytes, value: bytes, reason: str) -> None:
    """Each with its reason, which only the operator sees."""
    assert reason_of(with_header(signed(KEY, BODY), name, value)) == reason


def test_a_padded_copy_of_an_authentic_request_is_refused() -> None:
    """Foreign entries are passed over and nobody signs them, so their length has a bound of its own."""
    own = signed(KEY, BODY).head.all(b"webhook-signature")[0]
    for room, accepted in ((8192, True), (8193, False)):
        padded = with_header(signed(KEY, BODY), b"webhook-signature", own + b" v1," + b"A" * (room - len(own) - 4))
        if accepted:
            assert SCHEME.verify(padded, (PUBLIC,), at(NOW)).key.id == "k1"
        else:
            assert reason_of(padded) == "signature"


@pytest.mark.parametrize("name", [b"webhook-id", b"webhook-timestamp", b"webhook-signature"])
def test_missing_and_repeated_headers_are_refused(name: bytes) -> None:
    """Exactly one of each."""
    original = signed(KEY, BODY)
    pairs = original.head.headers
    without = Request(Head("POST", "/webhooks", tuple(pair for pair in pairs if pair[0] != name)), BODY)
    twice = Request(Head("POST", "/webhooks", (*pairs, (name, original.head.all(name)[0]))), BODY)

    assert reason_of(without) == reason_of(twice)


@pytest.mark.parametrize("distance", [-301, 301, 100_000])
def test_an_authentic_request_out_of_tolerance_has_its_own_reason(distance: int) -> None:
    """It pages: a clock is wrong, or the gateway stamps the event and not the attempt."""
    assert reason_of(signed(KEY, BODY), now=NOW + distance) == "timestamp"


def test_a_forged_request_out_of_tolerance_is_a_forgery() -> None:
    """The reason `timestamp` is only ever given to authentic requests."""
    assert reason_of(signed(KEY, b"other", timestamp=1), (OTHER,)) == "signature"


def test_another_version_tag_is_never_read_as_ours() -> None:
    """`v1a` is Ed25519; an entry of another tag is passed over even if its bytes would fit."""
    headers = KEY.sign("evt_1", NOW, BODY)
    for tag in ("V1a,", "v1,", "v1aa,", "v1a:", ""):
        spelled = headers | {"webhook-signature": tag + headers["webhook-signature"][4:]}
        assert reason_of(request(spelled, BODY)) == "signature"


def with_window(begin_seconds: int | None, end_seconds: int | None, *, test_only: bool = False) -> PublicKey:
    """The key with a window that is given in seconds from now."""
    begin = at(NOW) + timedelta(seconds=begin_seconds) if begin_seconds is not None else None
    end = at(NOW) + timedelta(seconds=end_seconds) if end_seconds is not None else None
    return PublicKey("k1", PUBLIC.key, begin, end, test_only)


@pytest.mark.parametrize("window", [(None, None), (0, None), (None, 0), (0, 0), (-5, 5)])
def test_a_key_vouches_within_its_window(window: tuple[int | None, int | None]) -> None:
    """Both ends belong to it."""
    assert SCHEME.verify(signed(KEY, BODY), (with_window(*window),), at(NOW)).key.id == "k1"


@pytest.mark.parametrize("window", [(1, None), (None, -1), (1, 5), (-5, -1)])
def test_an_authentic_request_by_a_key_outside_of_its_window_has_its_own_reason(
    window: tuple[int | None, int | None],
) -> None:
    """It is money that comes too late or too early: it must not drown among the forgeries."""
    assert reason_of(signed(KEY, BODY), (OTHER, with_window(*window))) == "key_window"


def test_a_forgery_is_a_forgery_whatever_the_windows() -> None:
    """The reason `key_window` is only ever given to authentic requests."""
    assert reason_of(signed(KEY, b"other body"), (OTHER, with_window(1, 2))) == "key_window"
    assert reason_of(with_signature(signed(KEY, BODY), bytes(64)), (OTHER, with_window(1, 2))) == "signature"


def test_a_key_that_is_valid_wins_over_one_that_is_not() -> None:
    """In a rotation both have signed; that the old one has ended does not matter then."""
    new = SigningKey(bytes(range(1, 33)))
    value = b" ".join(signed(by, BODY).head.all(b"webhook-signature")[0] for by in (KEY, new))
    both = with_header(signed(KEY, BODY), b"webhook-signature", value)
    keys = (with_window(None, -1), parse_key(f"new={new.public_text()}", "here"))

    assert SCHEME.verify(both, keys, at(NOW)).key.id == "new"


def test_a_key_for_tests_counts_only_where_no_other_fits() -> None:
    """A request that a live key has signed too is live, in whatever order keys and signatures stand."""
    live = SigningKey(bytes(range(1, 33)))
    test_key, live_key = with_window(None, None, test_only=True), parse_key(f"live={live.public_text()}", "here")
    for signers in ((KEY, live), (live, KEY)):
        value = b" ".join(signed(by, BODY).head.all(b"webhook-signature")[0] for by in signers)
        both = with_header(signed(KEY, BODY), b"webhook-signature", value)
        for keys in ((test_key, live_key), (live_key, test_key)):
            assert SCHEME.verify(both, keys, at(NOW)).key.id == "live"
    assert SCHEME.verify(signed(KEY, BODY), (live_key, test_key), at(NOW)).key.test_only
