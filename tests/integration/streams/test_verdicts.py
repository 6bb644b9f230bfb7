"""What the stream makes of deliveries when nothing goes wrong."""

import signal
from collections.abc import Sequence

from schemas.headers import Header
from tests.integration.streams.traffic import (
    VERDICT_HEADERS,
    Event,
    Road,
    assert_first_passes_in_order,
    assert_nothing_lost,
    disordered,
    event,
    header_list,
    header_texts,
    source,
)
from tests.integration.streams.worker import Worker, until


def expected_verdicts(road: Road) -> dict[tuple[int, int], tuple[str, str, str]]:
    """Verdict, previous version and previous status of each delivery, by the plainest model there is."""
    seen: dict[bytes, set[str]] = {}
    current: dict[bytes, tuple[int, str]] = {}
    expected = {}
    for position, message in sorted(road.events().items()):
        key, found = bytes(message.key() or b""), header_texts(message)
        version, before = found.get("ce_version", "none"), current.get(key)
        shown = (str(before[0]), before[1]) if before else ("", "")
        if version in seen.setdefault(key, set()):
            verdict = "redelivered"
        elif version == "none":
            verdict = "immutable"
        elif before is None or int(version) > before[0]:
            verdict = "advanced"
            current[key] = (int(version), found["ce_status"])
        else:
            verdict = "late"
        seen[key].add(version)
        expected[position] = (verdict, *shown)
    return expected


def test_each_delivery_goes_out_once_with_its_verdict_also_over_a_restart(road: Road, worker: Worker) -> None:
    """Verdicts are those of the plain model, in order, and what was known before a clean stop is known after it."""
    written = road.write(disordered(1500, 60, seed=3))
    worker.start()
    until(lambda: road.output_count() == written, 90, f"outputs of {written} events")
    assert worker.end(signal.SIGTERM) == 0

    written += road.write(disordered(1500, 60, seed=4, first=1500))
    worker.start()
    until(lambda: road.output_count() == written, 90, f"outputs of {written} events")
    worker.wait_ready()
    status, exposition = worker.ask("/metrics")
    assert worker.end(signal.SIGTERM) == 0

    assert_nothing_lost(road)
    assert_first_passes_in_order(road)
    found = {}
    for messages in road.outputs().values():
        for message in messages:
            texts = header_texts(message)
            told = (texts["ce_verdict"], texts["ce_previousversion"], texts["ce_previousstatus"])
            assert source(message) not in found
            found[source(message)] = told
    assert expected_verdicts(road) == found
    assert {told[0] for told in found.values()} == {"advanced", "late", "redelivered", "immutable"}
    assert status == 200
    assert 'tallyhook_stream_verdicts_total{verdict="advanced"}' in exposition
    assert "tallyhook_stream_batch_events_count" in exposition


def test_headers_go_on_in_order_repeated_ones_too(road: Road, worker: Worker) -> None:
    """All original headers stay, in order; only what an earlier pass of the stream had added is replaced."""
    plain = event(1, "dep_1", 7)
    extra: list[Header] = [("x-note", "one"), ("x-note", "two"), ("x-empty", b""), ("x-note", "three")]
    stale: list[Header] = [("ce_verdict", "late"), ("ce_sourcepartition", "77"), ("ce_sourceoffset", "99")]
    road.write([Event(plain.key, plain.value, [*stale, *plain.headers, *extra])])
    worker.start()
    until(lambda: road.output_count() == 1, 90, "one output")
    [output] = [message for messages in road.outputs().values() for message in messages]
    [cause] = road.events().values()
    kept = header_list(cause)[len(stale) :]
    assert kept == header_list(output)[:-VERDICT_HEADERS]
    assert (cause.partition(), cause.offset()) == source(output)
    assert header_texts(output)["ce_verdict"] == "advanced"


def unusable() -> dict[str, tuple[Event, str]]:
    """Records that nobody's door writes, each with the reason it is set aside for."""
    good = event(1, "dep_1", 1)
    without: Sequence[Header] = [header for header in good.headers if header[0] != "ce_type"]
    broken: Sequence[Header] = [(name, b"\xff\xfe" if name == "ce_status" else value) for name, value in good.headers]
    return {
        "foreign": (Event(b"dep_1", b"\x00\xff", []), "record_headers"),
        "missing": (Event(b"dep_1", b"{}", [*without]), "record_headers"),
        "not text": (Event(b"dep_1", b"{}", [*broken]), "record_headers"),
        "no key": (Event(None, b"{}", good.headers), "record_headers"),
        "other key": (Event(b"dep_2", b"{}", good.headers), "record_headers"),
        "no value": (Event(b"dep_1", None, good.headers), "record_headers"),
        "test mode": (event(2, "dep_1", 2, livemode=False), "wrong_livemode"),
    }


def test_what_cannot_be_judged_is_set_aside_with_its_bytes(road: Road, worker: Worker) -> None:
    """A foreign record stops nobody: it is a dead letter with a reason, and the partition goes on."""
    cases = unusable()
    road.write([bad for bad, _ in cases.values()])
    road.write([event(10, "dep_1", 1), event(11, "dep_1", 2)])
    worker.start()
    until(lambda: road.output_count() == len(cases) + 2, 90, "an output for each record")
    events, letters = road.events(), road.dead_letters()
    assert len(cases) == len(letters)
    reasons = []
    for letter in letters:
        found, cause = header_texts(letter), events[source(letter)]
        assert (cause.key(), cause.value()) == (letter.key(), letter.value())
        assert found["ce_stage"] == "streams"
        assert found["ce_sourcetopic"] == road.names.events
        assert found["ce_detail"]
        assert header_list(cause) == header_list(letter)[6:]
        reasons.append(found["ce_reason"])
    assert sorted(reason for _, reason in cases.values()) == sorted(reasons)
    verdicts = [header_texts(message)["ce_verdict"] for messages in road.outputs().values() for message in messages]
    assert verdicts == ["advanced", "advanced"]
