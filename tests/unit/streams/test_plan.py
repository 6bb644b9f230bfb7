"""Batches: one output a delivery, one change an object, on top of what was stored."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from schemas.headers import EventHeaders, texts
from schemas.topics import TopicNames
from streams.guard import Delivery, Seen, judge
from streams.plan import Plan, Planner, Record

NAMES = TopicNames("shop")
DAY = 20_000
HEADERS = EventHeaders(
    id="evt_1", type="deposit.settled", source="/gateway", subject="dep_1", time="t", object_kind="deposit_order",
    status="open", version=1, merchant="m", sequence=1, livemode=True, received_at="t", origin="webhook", key_id="k",
)  # fmt: skip


@dataclass(frozen=True)
class Kafka:
    """A record as Kafka hands it over."""

    key: bytes | None
    value: bytes | None = b"{}"
    headers: Sequence[tuple[str, bytes | None]] = field(default_factory=list)
    partition: int = 3
    offset: int = 0


def record(subject: str, version: int | None, offset: int = 0, **changes: object) -> Kafka:
    """A record that the door could have written."""
    made = replace(HEADERS, subject=subject, version=version, status=f"s{version}", **changes)  # type: ignore[arg-type]
    pairs = [(name, value.encode() if isinstance(value, str) else value) for name, value in made.encode()]
    return Kafka(subject.encode(), b"{}", pairs, offset=offset)


def plan(records: Sequence[Record], stored: dict[bytes, Seen] | None = None) -> Plan:
    """What a live installation makes of them."""
    return Planner(NAMES, livemode=True).plan(records, lambda found: (stored or {}).get(found.key or b""), DAY)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), st.one_of(st.none(), st.integers(0, 5))), max_size=60))
def test_a_batch_is_the_same_as_one_by_one(pairs: list[tuple[str, int | None]]) -> None:
    """The overlay hides nothing: verdicts and states are those of batches of one."""
    records = [record(subject, version, offset) for offset, (subject, version) in enumerate(pairs)]
    whole = plan(records)
    stored: dict[bytes, Seen] = {}
    verdicts = []
    for single in records:
        step = plan([single], stored)
        stored |= {key: change.seen for key, change in step.changes.items()}
        verdicts.append(texts(step.outputs[0].headers)["ce_verdict"])
    assert stored == {key: change.seen for key, change in whole.changes.items()}
    assert verdicts == [texts(output.headers)["ce_verdict"] for output in whole.outputs]
    assert sum(whole.verdicts.values()) == len(records) == len(whole.outputs)


def test_an_output_names_the_state_before_and_the_delivery() -> None:
    """Previous version and status are those before this very delivery, stored or of the same batch."""
    _, seen = judge(None, Delivery(4, "s4", DAY))
    found = plan([record("dep_1", 6, 10), record("dep_1", 5, 11)], {b"dep_1": seen})
    first, second = (texts(output.headers) for output in found.outputs)
    assert (first["ce_verdict"], first["ce_previousversion"], first["ce_previousstatus"]) == ("advanced", "4", "s4")
    assert (second["ce_verdict"], second["ce_previousversion"], second["ce_previousstatus"]) == ("late", "6", "s6")
    assert (second["ce_sourcepartition"], second["ce_sourceoffset"]) == ("3", "11")
    assert [output.partition for output in found.outputs] == [3, 3]
    assert {output.topic for output in found.outputs} == {NAMES.state_changes}


def test_a_redelivery_changes_nothing() -> None:
    """So the changelog gets no record for it."""
    _, seen = judge(None, Delivery(4, "s4", DAY))
    assert plan([record("dep_1", 4)], {b"dep_1": seen}).changes == {}


def test_a_dead_letter_leaves_the_batch_and_the_object_alone() -> None:
    """What cannot be judged gets its own output, in its turn, and no state."""
    found = plan([record("dep_1", 1), Kafka(b"dep_1", b"raw", [("x", b"1")], offset=8), record("dep_1", 2, 9)])
    assert [output.topic for output in found.outputs] == [NAMES.state_changes, NAMES.dead_letters, NAMES.state_changes]
    letter = found.outputs[1]
    assert (letter.key, letter.value, letter.partition) == (b"dep_1", b"raw", None)
    assert letter.headers == [
        ("ce_stage", "streams"),
        ("ce_reason", "record_headers"),
        ("ce_detail", "header ce_livemode is missing"),
        ("ce_sourcetopic", NAMES.events),
        ("ce_sourcepartition", "3"),
        ("ce_sourceoffset", "8"),
        ("x", b"1"),
    ]
    assert dict(found.dead) == {"record_headers": 1}
    assert found.changes[b"dep_1"].seen.version == 2


def test_a_header_name_that_is_not_utf_8_is_set_aside_with_the_name_spelled_out() -> None:
    """Kafka takes any bytes, but the next writer takes none that are not UTF-8; a name in Thai is none of these."""
    good, odd = record("dep_1", 1), record("dep_1", 2, 1)
    found = plan(
        [
            replace(good, headers=[*good.headers, ("หมายเหตุ", b"1")]),
            replace(odd, headers=[*odd.headers, ("x-\udcff", b"1")]),
        ]
    )
    assert [output.topic for output in found.outputs] == [NAMES.state_changes, NAMES.dead_letters]
    letter = found.outputs[1]
    assert texts(letter.headers)["ce_detail"] == "header name x-\\xff is not UTF-8"
    assert letter.headers[-1] == ("x-\\xff", b"1")
    assert all(name.encode() for name, _ in letter.headers)


def test_the_other_mode_is_set_aside_on_either_side() -> None:
    """A test event never touches a live installation, nor a live event a test one."""
    live, test = record("dep_1", 1), record("dep_1", 1, livemode=False)
    assert dict(plan([test]).dead) == {"wrong_livemode": 1}
    other = Planner(NAMES, livemode=False).plan([live, test], lambda _: None, DAY)
    assert dict(other.dead) == {"wrong_livemode": 1}
    assert dict(other.verdicts) == {"advanced": 1}
