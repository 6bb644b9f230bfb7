"""Bodies that an honest sender would never sign: events whose JSON is bent, as bytes, from a source of chance.

The JSON is put together as text, since no writer makes repeated members, lone surrogates or numbers without a value.
The chance may be a seeded `random.Random` or one of Hypothesis', which then finds the smallest absurdity.
"""

from collections.abc import Callable
from random import Random

Member = tuple[bytes, "bytes | list[Member]"]
"""The text of a key with its quotes, and the text of a value or the members of an object."""

Tree = list[Member]


def text(value: str) -> bytes:
    """A JSON string of characters that need no escape."""
    return b'"%b"' % value.encode()


DEPTHS = (40, 195, 201, 600, 3_000)
NUMBERS = (
    *(b"0", b"-0", b"1", b"-1", b"1.0", b"1e0", b"1E+2", b"10e-1", b"0.5", b"-0.0", b"1e400", b"-1e400", b"1e-400"),
    *(b"9007199254740993", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809"),
    *(b"18446744073709551615", b"18446744073709551616", b"1" + b"0" * 400, b"0." + b"3" * 1_500, b"9" * 1_500),
    *(b"1e99999999999", b"32767", b"32768", b"2147483648"),
)
NO_NUMBERS = (b"NaN", b"Infinity", b"-Infinity", b"01", b"+1", b".5", b"1.", b"0x10", b"1_000", b"--1", b"1e", b"-")
TEXTS = (
    *(b'""', b'" "', b'"1"', b'"true"', b'"null"', b'"a\\nb"', b'"\\u0000"', b'"a\\u0000b"', b'"\\ud800"'),
    *(b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"', b'"\\ufeff"', b'"\\u202e"', b'"\\u007f"', b'"\\/"', b'"\xff"'),
    *(b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"a\x00b"', b'"a\nb"', b'"\x7f"', b'"%s"', b'"\\\'; DROP TABLE x; --"'),
    *(b'"%b"' % (b"x" * length) for length in (511, 512, 513, 3_000)),
    *(b'"%b"' % ("ก" * length).encode() for length in (170, 171)),
    *(b'"2026-02-30T00:00:00Z"', b'"2026-02-01"', b'"10000-01-01T00:00:00Z"', b'"2026-01-01T24:00:00Z"'),
    *(b'"0001-01-01T00:00:00+14:00"', b'"2026-01-01T00:00:60Z"', b'"2026-01-01T00:00:00.1234567890123Z"'),
)
NO_TEXTS = (b"'x'", b'"', b'"\\', b'"\\x41"', b'"\\u12"', b"undefined", b"x", b"", b"//", b"/**/1")
OTHERS = (
    *(b"true", b"false", b"null", b"[]", b"{}", b"[null]", b'{"id":1}', b"True", b"[1,]", b"{,}", b"tru"),
    *(b"[" * depth + b"]" * depth for depth in DEPTHS),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in DEPTHS),
)
SOUND_VALUES = (*NUMBERS, *TEXTS, *OTHERS)
VALUES = (*SOUND_VALUES, *NO_NUMBERS, *NO_TEXTS)

MONEY: Tree = [
    (b'"ordered_amount_minor"', b"50000"),
    (b'"transferred_amount_minor"', b"50000"),
    (b'"amount_received_minor"', b"50000"),
    (b'"fee_total_minor"', b"1000"),
    (b'"credited_amount_minor"', b"49000"),
]
FLAG: Tree = [
    (b'"claim_id"', text("clm_1")),
    (b'"cause"', text("same_transfer_excess")),
    (b'"amount_minor"', b"500"),
    (b'"slip_received_at"', text("2026-01-01T00:00:00Z")),
    (b'"status"', text("open")),
    (b'"action_required"', text("contact_support")),
]
ORDER: Tree = [
    (b'"amount_total_minor"', b"100000"),
    (b'"fee_total_minor"', b"2675"),
    (b'"total_locked_minor"', b"102675"),
    (b'"filled_minor"', b"30000"),
    (b'"remaining_minor"', b"70000"),
    (b'"settled_splits"', b"1"),
    (b'"max_splits"', b"4"),
    (b'"merchant_reference"', text("WD-1")),
]
MOVEMENT: Tree = [
    (b'"type"', text("deposit")),
    (b'"direction"', text("credit")),
    (b'"amount_minor"', b"5000"),
    (b'"created_at"', text("2026-01-01T00:00:00Z")),
    (b'"source"', [(b'"id"', text("dep_1"))]),
]


def _sound(chance: Random, number: int) -> Tree:
    """A sound event with ids of its own."""
    kind = chance.choice(("deposit_order", "withdrawal_order", "balance_transaction", "chargeback"))
    entity: Tree = [(b'"id"', text(f"obj_{number}")), (b'"object"', text(kind))]
    beside: Tree = []
    status = chance.choice(("settled", "open", "expired", "reversed", "under_review", "rejected", "partially_filled"))
    event_type = f"deposit.{status}"
    if kind != "balance_transaction":
        entity += [(b'"version"', b"3"), (b'"status"', text(status))]
    if kind == "deposit_order":
        entity += MONEY
        entity += [(b'"overpayment"', [(b'"claim_id"', text(f"clm_{number}")), *FLAG[1:]])] * chance.randint(0, 1)
    elif kind == "withdrawal_order":
        entity += ORDER
        event_type = chance.choice(("withdrawal.filled", "withdrawal.fill_reversed", f"withdrawal.{status}"))
        fill: Tree = [
            (b'"leg_ref"', text(f"leg_{number}")),
            (b'"amount_minor"', b"30000"),
            (b'"sequence"', b"1"),
            (b'"balance_transaction_id"', text(f"btxn_{number}")),
        ]
        beside = [(b'"fill"', fill)]
        if event_type == "withdrawal.fill_reversed":
            taken_back: Tree = [
                (b'"reason_code"', text("BANK_RECALL")),
                (b'"reverses_balance_transaction_id"', text(f"btxn_{number}")),
                (b'"balance_transaction_id"', text(f"rtxn_{number}")),
            ]
            beside += [(b'"reversal"', taken_back)]
    elif kind == "balance_transaction":
        event_type = "balance.credited"
        entity += MOVEMENT
    return [
        (b'"id"', text(f"evt_{number}")),
        (b'"type"', text(event_type)),
        (b'"livemode"', b"true"),
        (b'"created_at"', text("2026-01-02T03:04:05Z")),
        (b'"sequence"', b"%d" % number),
        (b'"account"', [(b'"merchant_id"', text("mer_1"))]),
        (b'"data"', [(b'"object"', entity), *beside]),
    ]


def _objects(tree: Tree) -> list[Tree]:
    """The event and every object in it that is put together here."""
    found = [tree]
    for _, value in tree:
        if isinstance(value, list):
            found += _objects(value)
    return found


def _replace(chance: Random, place: Tree, values: tuple[bytes, ...]) -> None:
    at = chance.randrange(len(place))
    place[at] = (place[at][0], chance.choice(values))


def _repeat(chance: Random, place: Tree, values: tuple[bytes, ...]) -> None:
    """The same key twice: with another value, before or behind; written with an escape, now and then."""
    key, value = place[chance.randrange(len(place))]
    other: bytes | Tree = chance.choice((chance.choice(values), value, text("other"), b"7"))
    if chance.random() < 0.3:
        key = b'"\\u%04x%b' % (key[1], key[2:])
    place.insert(chance.choice((0, len(place))), (key, other))


def _remove(chance: Random, place: Tree, _: tuple[bytes, ...]) -> None:
    if len(place) > 1:
        del place[chance.randrange(len(place))]


def _escape(chance: Random, place: Tree, _: tuple[bytes, ...]) -> None:
    """A key whose first letter is written as an escape is the same key."""
    at = chance.randrange(len(place))
    key, value = place[at]
    place[at] = (b'"\\u%04x%b' % (key[1], key[2:]), value)


def _add(chance: Random, place: Tree, values: tuple[bytes, ...]) -> None:
    key = chance.choice(
        (b'"note"', b'""', b'"\\u0000"', b'"\\ud800"', b'"Id"', b'"id "', b'"__proto__"', b'"\xc3\xa9"')
    )
    place.insert(chance.randrange(len(place) + 1), (key, chance.choice(values)))


_BENDINGS: tuple[Callable[[Random, Tree, tuple[bytes, ...]], None], ...] = (_replace, _repeat, _remove, _escape, _add)


def _cut(chance: Random, raw: bytes) -> bytes:
    return raw[: chance.randrange(len(raw))]


def _flip(chance: Random, raw: bytes) -> bytes:
    at = chance.randrange(len(raw))
    return raw[:at] + bytes([raw[at] ^ (1 << chance.randrange(8))]) + raw[at + 1 :]


_SCRAMBLINGS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _cut,
    _flip,
    lambda _, raw: b"\xef\xbb\xbf" + raw,
    lambda _, raw: raw.decode("utf-8", "replace").encode("utf-16"),
    lambda _, raw: b"[" + raw + b"]",
    lambda _, raw: raw + raw,
    lambda _, raw: raw + b"\x00",
    lambda _, raw: b"\x0b" + raw,
    lambda _, raw: b" \r\n\t" + raw + b"\n",
    lambda chance, _: chance.choice((*VALUES, b"\x1f\x8b\x08\x00", b"<xml/>", b"a=b&c=d")),
)


def body(chance: Random, number: int, *, broken: float = 0.25) -> bytes:
    """One absurd event; now and then a sound one.

    Args:
        number: makes the ids of event and object, unless just these are bent.
        broken: how often the bytes themselves are scrambled.
    """
    tree = _copied(_sound(chance, number))
    values = VALUES if chance.random() < broken else SOUND_VALUES
    for _ in range(chance.randint(0, 3)):
        place = chance.choice([found for found in _objects(tree) if found])
        chance.choice(_BENDINGS)(chance, place, values)
    raw = _written(tree)
    return chance.choice(_SCRAMBLINGS)(chance, raw) if chance.random() < broken else raw


def _copied(tree: Tree) -> Tree:
    return [(key, _copied(value) if isinstance(value, list) else value) for key, value in tree]


def _written(tree: Tree) -> bytes:
    return b"{%b}" % b",".join(
        b"%b:%b" % (key, _written(value) if isinstance(value, list) else value) for key, value in tree
    )
