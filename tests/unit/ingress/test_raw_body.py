"""The raw-body scheme: the signature of the bytes alone, in a header and spelling of the endpoint's choice."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from ingress.messages import Head, Request
from ingress.public_keys import PublicKey
from ingress.refusals import Refused
from ingress.schemes.raw_body import RawBody
from tests.unit.ingress.requests import NOW, at

KEY, OTHER = SigningKey(bytes(range(32))), SigningKey(bytes(32))
KEYS = (PublicKey("other", OTHER.verify_key), PublicKey("k1", KEY.verify_key))
HEX = RawBody(header="x-signature", encoding="hex", max_signatures=4)
BASE64 = RawBody(header="x-signature", encoding="base64", max_signatures=4)
BODY = b'{"id":"evt_1"}'


def signature(body: bytes = BODY, key: SigningKey = KEY) -> bytes:
    """64 bytes."""
    return key.sign(body).signature


def request(*values: bytes, body: bytes = BODY, name: bytes = b"x-signature") -> Request:
    """A request whose header carries these values, one a line."""
    return Request(Head("POST", "/webhooks/raw", tuple((name, value) for value in values)), body)


def refused(scheme: RawBody, candidate: Request) -> str:
    """Why it is refused; fails when it is not."""
    with pytest.raises(Refused) as caught:
        scheme.verify(candidate, KEYS, at(NOW))
    return caught.value.reason


@given(st.binary(max_size=200))
def test_what_was_signed_is_vouched_for(body: bytes) -> None:
    """Either spelling, hex in either case; there is no message id, and the time does not matter."""
    text = signature(body).hex().encode()
    for scheme, value in ((HEX, text), (HEX, text.upper()), (BASE64, base64.b64encode(signature(body)))):
        vouched = scheme.verify(request(value, body=body), KEYS, at(0))
        assert (vouched.key.id, vouched.message_id) == ("k1", None)


@given(body=st.binary(min_size=1, max_size=200), data=st.data())
def test_a_flipped_bit_is_refused(body: bytes, data: st.DataObject) -> None:
    """Of the body or of the signature."""
    changed, proof = bytearray(body), bytearray(signature(body))
    spoiled = data.draw(st.sampled_from([changed, proof]))
    spoiled[data.draw(st.integers(0, len(spoiled) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    assert refused(HEX, request(bytes(proof).hex().encode(), body=bytes(changed))) == "signature"


@pytest.mark.parametrize("separator", [b" ", b",", b", ", b"  "])
def test_any_of_several_signatures_is_enough(separator: bytes) -> None:
    """A rotation signs with both keys; an entry that cannot be read is passed over."""
    stranger = SigningKey(bytes(range(1, 33)))
    entries = [b"v1", signature(key=stranger).hex().encode(), signature().hex().encode()]

    assert HEX.verify(request(separator.join(entries)), KEYS, at(NOW)).key.id == "k1"


@pytest.mark.parametrize(
    "values",
    [
        (),
        (b"",),
        (signature().hex().encode(), signature().hex().encode()),
        (signature().hex().encode()[:-2],),
        (signature().hex().encode() + b"00",),
        (signature().hex().encode()[:-1],),
        (b"0x" + signature().hex().encode()[2:],),
        (signature().hex().encode()[:-2] + b"aA",),
        (signature().hex().encode()[:-1] + b"\xe9",),
        (base64.b64encode(signature()),),
        (signature().hex().encode() + b" " * 8192,),
        (b" ".join([signature(key=OTHER, body=b"x").hex().encode()] * 4 + [signature().hex().encode()]),),
    ],
    ids=[
        "missing",
        "empty",
        "repeated",
        "short",
        "long",
        "odd",
        "0x",
        "mixed case",
        "no ASCII",
        "base64",
        "padded",
        "too many",
    ],
)
def test_malformed_headers_are_refused(values: tuple[bytes, ...]) -> None:
    """Never by an unforeseen error."""
    assert refused(HEX, request(*values)) == "signature"


def test_hex_is_not_read_as_base64() -> None:
    """128 hex digits are the base64 of 96 bytes: the length tells."""
    assert refused(BASE64, request(signature().hex().encode())) == "signature"
    assert refused(BASE64, request(base64.b64encode(signature()).rstrip(b"="))) == "signature"


def test_only_its_own_header_counts() -> None:
    """Another header's signature proves nothing here."""
    assert refused(HEX, request(signature().hex().encode(), name=b"webhook-signature")) == "signature"
    assert HEX.headers == ("x-signature",)
