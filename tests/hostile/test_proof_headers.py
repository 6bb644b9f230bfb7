"""The three headers of `standard-webhooks`, bent in every way: vouched for or refused, never anything else.

The judge is written apart from the product: an entry counts when its text is exactly what encoding 64 bytes gives, and
these bytes are the signature.
"""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingress.keyring import Keyring
from ingress.messages import Head, Request
from ingress.refusals import Refused
from ingress.schemes.standard_webhooks import StandardWebhooks
from schemas.door import MAX_PROOF_BYTES
from tallyhook.gateway.signing import SigningKey
from tests.unit.ingress.requests import NOW, at

KEY, OTHER = SigningKey(b"\x01" * 32), SigningKey(b"\x02" * 32)
KEYS = Keyring(f"k1={KEY.public_text()}", None).keys
SCHEME = StandardWebhooks(tolerance_seconds=300, max_signatures=16, max_id_bytes=512)
BODY = b'{"id":"evt_1"}'
ID, TIMESTAMP, SIGNATURE = (
    value.encode()
    for value in (KEY.sign("evt_1", NOW, BODY)[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
)
TEXT = SIGNATURE.removeprefix(b"v1a,")
RAW = base64.b64decode(TEXT)

NOT_AUTHENTIC = {"signature", "id", "timestamp_malformed"}


def outcome(message_id: bytes, timestamp: bytes, signature: bytes, body: bytes = BODY) -> str:
    """Who vouches, or the reason of the refusal; any other exception is a fault and leaves here."""
    pairs = ((b"webhook-id", message_id), (b"webhook-timestamp", timestamp), (b"webhook-signature", signature))
    try:
        return SCHEME.verify(Request(Head("POST", "/webhooks", pairs), body), KEYS, at(NOW)).key.id
    except Refused as refusal:
        return refusal.reason


TEXTS = [
    TEXT,
    TEXT.rstrip(b"="),
    TEXT[:-1],
    TEXT + b"=",
    TEXT + b"====",
    base64.urlsafe_b64encode(RAW),
    base64.b64encode(RAW + b"\x00"),
    base64.b64encode(RAW[:-1]),
    base64.b32encode(RAW),
    base64.b16encode(RAW),
    RAW.hex().encode(),
    TEXT.swapcase(),
    base64.b64encode(TEXT),
    TEXT.replace(b"=", b"%3D"),
    TEXT.replace(b"/", b"%2F"),
    *(TEXT[:-3] + bytes([letter]) + b"==" for letter in b"BCDghiwxyz0189+/"),
]
BLANKS = [b" ", b"  ", b"\t", b"\r\n", b"\n", b"\x0b", b"\x0c", b"\xc2\xa0", b"\x00"]
TAGS = [b"v1a,", b"V1A,", b"v1,", b"v1a", b"v1a:", b"v1a,,", b"v1a, ", b"v1b,", b"", b",", b"v1a,v1a,"]
blanks = st.sampled_from([b"", *BLANKS])


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_each_spelling_alone(number: int) -> None:
    """The good signature's base64 in ways that a lax reader would take for the same, under every tag."""
    for tag in TAGS:
        value = tag + TEXTS[number]
        assert outcome(ID, TIMESTAMP, value) == ("k1" if counts(value) else "signature"), value


@pytest.mark.parametrize("blank", BLANKS)
def test_blanks_within_a_signature(blank: bytes) -> None:
    """At every place of the header: between entries a space is nothing, within one it is two halves."""
    for place in range(len(SIGNATURE) + 1):
        value = SIGNATURE[:place] + blank + SIGNATURE[place:]
        assert outcome(ID, TIMESTAMP, value) == ("k1" if counts(value) else "signature"), value


@st.composite
def spellings(draw: st.DrawFn) -> bytes:
    """One of these, with a blank in it now and then."""
    text = draw(st.just(TEXT) | st.sampled_from(TEXTS))
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.just(b"") | blanks) + text[place:]


tags = st.just(b"v1a,") | st.sampled_from(TAGS)
entries = st.one_of(
    st.builds(lambda tag, text: tag + text, tags, spellings()),
    st.binary(max_size=100),
    st.just(b"v1a," + base64.b64encode(OTHER.sign("evt_1", NOW, BODY)["webhook-signature"].encode()[:64])),
    st.just(OTHER.sign("evt_1", NOW, BODY)["webhook-signature"].encode()),
)


def counts(value: bytes) -> bool:
    """Whether a header must be vouched for: printable, bounded, at most 16 entries, one of them the good one."""
    found = [entry for entry in value.split(b" ") if entry]
    printable = all(0x20 <= byte <= 0x7E for byte in value)
    return printable and len(value) <= MAX_PROOF_BYTES and len(found) <= 16 and SIGNATURE in found


@given(st.lists(entries, max_size=20), st.sampled_from([b" ", b"  ", b",", b", ", b";", b"\t"]))
def test_a_header_of_signatures_counts_by_its_one_good_entry(found: list[bytes], between: bytes) -> None:
    """Other versions, alphabets and paddings, blanks inside, foreign entries, too many: only the exact entry counts."""
    value = between.join(found)

    assert outcome(ID, TIMESTAMP, value) == ("k1" if counts(value) else "signature")


@given(st.permutations([SIGNATURE, b"v1,abc", b"v1a,AAAA", b"v2a," + TEXT, b"\x21\x7e"]), st.integers(1, 3))
def test_the_order_of_entries_and_the_blanks_between_do_not_matter(found: list[bytes], blank: int) -> None:
    """A rotation sends several entries; which stands first is the sender's to say."""
    assert outcome(ID, TIMESTAMP, (b" " * blank).join(found)) == "k1"


@pytest.mark.parametrize("length", [MAX_PROOF_BYTES + 1, 100_000, 5_000_000])
def test_a_huge_header_is_refused_by_its_length(length: int) -> None:
    """Before its entries are cut apart."""
    assert outcome(ID, TIMESTAMP, SIGNATURE + b" " * (length - len(SIGNATURE))) == "signature"


numerals = st.one_of(
    st.text(st.characters(categories=["Nd", "No", "Nl"]), min_size=1, max_size=12).map(str.encode),
    st.floats().map(lambda value: repr(value).encode()),
    st.integers(-(2**70), 2**70).map(lambda value: str(value).encode()),
    st.integers(NOW - 400, NOW + 400).map(lambda value: str(value).encode()),
    st.binary(max_size=14),
)
DRESSINGS = [b"", b" ", b"+", b"-", b"0", b"00", b"0x", b"0b", b"_", b"\n", b"\r", b"\x00", b".0", b"e0", b"\xa0"]
dressings = st.sampled_from(DRESSINGS)


@pytest.mark.parametrize("before", DRESSINGS)
def test_a_dressed_timestamp(before: bytes) -> None:
    """What `int` or a lax reader would take off again: before the good timestamp and behind it."""
    for behind in DRESSINGS:
        judge_timestamp(before + TIMESTAMP + behind)


@given(numerals, dressings, dressings)
def test_a_timestamp_is_plain_digits(numeral: bytes, before: bytes, behind: bytes) -> None:
    """Signs, blanks, other digits, fractions, exponents, underscores, overflow: malformed, even when signed so."""
    judge_timestamp(before + numeral + behind)


def judge_timestamp(value: bytes) -> None:
    """Asserts what is said of a timestamp that its sender has signed."""
    signed = b".".join((ID, value, BODY))
    signature = b"v1a," + base64.b64encode(KEY._key.sign(signed).signature)
    found = outcome(ID, value, signature)

    if re.fullmatch(rb"[0-9]{1,12}", value) is None:
        assert found == "timestamp_malformed"
    else:
        assert found == ("k1" if abs(int(value) - NOW) <= 300 else "timestamp")


ids = st.one_of(
    st.binary(max_size=20),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.integers(508, 516).map(lambda length: b"x" * length),
    st.builds(lambda text, blank: text + blank, st.just(b"evt_1"), blanks),
    st.builds(lambda text, blank: blank + text, st.just(b"evt_1"), blanks),
)


@given(ids)
def test_an_id_is_printable_ascii_of_512_bytes_at_most(message_id: bytes) -> None:
    """Non-ASCII, control characters, blanks, empty, 513 bytes: refused even when signed so; a good one is kept."""
    signed = b".".join((message_id, TIMESTAMP, BODY))
    signature = b"v1a," + base64.b64encode(KEY._key.sign(signed).signature)
    sound = 1 <= len(message_id) <= 512 and all(0x21 <= byte <= 0x7E for byte in message_id)

    assert outcome(message_id, TIMESTAMP, signature) == ("k1" if sound else "id")


@given(st.sampled_from([ID, b"evt_1.", b"evt_1.1700000000", b"evt.1"]), st.binary(max_size=30), st.integers(0, 30))
def test_the_points_between_the_signed_parts_cannot_be_moved(message_id: bytes, body: bytes, cut: int) -> None:
    """`{id}.{timestamp}.{body}` reads in one way only where id and timestamp are what they are said to be."""
    signed = b".".join((message_id, TIMESTAMP, body))
    signature = b"v1a," + base64.b64encode(KEY._key.sign(signed).signature)
    first, _, rest = signed.partition(b".")
    second, _, third = rest.partition(b".")
    readings = {(message_id, TIMESTAMP, body), (first, second, third)}
    at_cut = min(cut, len(signed))
    readings.add((signed[:at_cut], TIMESTAMP, signed[at_cut:]))

    for reading in readings:
        expected = b".".join(reading) == signed and re.fullmatch(rb"[0-9]{1,12}", reading[1])
        found = outcome(reading[0], reading[1], signature, reading[2])
        if not expected:
            assert found in NOT_AUTHENTIC
        elif reading == (message_id, TIMESTAMP, body):
            assert found == "k1"


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"webhook-id", b"webhook-timestamp", b"webhook-signature", b"x"]), st.binary(max_size=90)
        ),
        max_size=8,
    ),
    st.binary(max_size=50),
)
def test_whatever_stands_in_the_headers_the_answer_is_a_reason(pairs: list[tuple[bytes, bytes]], body: bytes) -> None:
    """No exception of another kind leaves the scheme, and nothing random is vouched for."""
    with pytest.raises(Refused) as caught:
        SCHEME.verify(Request(Head("POST", "/webhooks", tuple(pairs)), body), KEYS, at(NOW))
    assert caught.value.reason in NOT_AUTHENTIC
