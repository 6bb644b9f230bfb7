"""Cases from the life of webhook receivers: what the events say, and how often."""

import json
from collections import Counter
from datetime import timedelta

import pytest

from tallyhook.kafka import read_to_end
from tests.cases.shop import PATIENCE_SECONDS, READ_SECONDS, Shop, deposit_body, event, header_of, money
from tests.running import await_true

THAI_REASON = "สลิปไม่ชัด 😿 é"
DEPOSIT = "SELECT pg_version, status FROM pg_deposits WHERE pg_deposit_id = %s"
SET_ASIDE = "SELECT reason, raw FROM quarantined_events WHERE event_id = ANY(%s) ORDER BY event_id"


@pytest.mark.case(6)
def test_case_6_thai_and_an_emoji_arrive_as_they_were_written(shop: Shop) -> None:
    """As UTF-8, and as JSON escapes with a surrogate pair: the effect has exactly the text, the record the bytes."""
    shop.correlate("c6_plain", "c6_escaped")
    plain = deposit_body("evt_c6_plain", "c6_plain", 1, "rejected", rejection={"display_th": THAI_REASON})
    escaped = json.dumps(
        event("evt_c6_escaped", "c6_escaped", 1, "rejected", rejection={"display_th": THAI_REASON}), ensure_ascii=True
    ).encode()
    assert b"\\ud83d\\ude3f" in escaped
    assert shop.post(plain, escaped) == [200, 200]
    shop.verdicts("evt_c6_plain", "evt_c6_escaped")
    for deposit in ("c6_plain", "c6_escaped"):
        assert [(e[1], e[2]["reason"]) for e in shop.effects(deposit)] == [("fail_order", THAI_REASON)]
    values = {message.key(): message.value() for message in shop.published(shop.names.events, "c6_plain", "c6_escaped")}
    assert values == {b"c6_plain": plain, b"c6_escaped": escaped}
    sent: list[str] = []

    def reached() -> bool:
        messages = shop.published(shop.names.effect("fail_order"), "c6_plain", "c6_escaped")
        sent[:] = [json.loads(message.value() or b"")["reason"] for message in messages]
        return len(sent) == 2

    await_true(reached, PATIENCE_SECONDS, "two fail_order")
    assert sent == [THAI_REASON, THAI_REASON]


@pytest.mark.case(7)
def test_case_7_sixty_thousand_nested_arrays_stop_nobody(shop: Shop) -> None:
    """200; every process keeps its id; it ends processed or set aside; the object's next event comes within 2 s."""
    shop.correlate("c7")
    pids = shop.pipeline.ready["pids"]
    body = deposit_body("evt_c7_deep", "c7", 1, "open", unknown=0).replace(
        b'"unknown": 0', b'"unknown": ' + b"[" * 60_000 + b"]" * 60_000
    )
    assert len(body) > 120_000
    assert shop.post(body, deposit_body("evt_c7_next", "c7", 2, "slip_received")) == [200, 200]
    assert shop.verdicts("evt_c7_next") == [("evt_c7_next", "advanced")]
    ((waited,),) = shop.rows("SELECT processed_at - received_at FROM pg_webhook_inbox WHERE event_id = 'evt_c7_next'")
    assert waited < timedelta(seconds=2)
    ended = (
        "SELECT (SELECT count(*) FROM pg_webhook_inbox WHERE event_id = 'evt_c7_deep' AND processed_at IS NOT NULL)"
        " + (SELECT count(*) FROM quarantined_events WHERE raw = %s AND reason <> '')"
    )
    shop.await_rows([(1,)], ended, body)
    assert shop.pipeline.ready["pids"] == pids
    assert all(shop.pipeline.answers(unit) for unit in pids)


@pytest.mark.case(13)
def test_case_13_members_that_are_empty_or_null(shop: Shop) -> None:
    """[] and {} where an object or text was expected: everything is processed, nothing is set aside."""
    fees: dict[str, object] = {"c13_list": [], "c13_object": {}, "c13_null": None}
    reviews: dict[str, object] = {"c13_no_reasons": {"reasons": []}, "c13_no_review": None}
    empty: tuple[object, ...] = ([], None)
    shop.correlate(*fees, *reviews)
    bodies = [
        json.dumps(
            event(f"evt_c13_{n}", f"c13_withdrawal_{n}", 1, "pending_approval")
            | {
                "type": "withdrawal.created",
                "data": {
                    "object": {
                        "id": f"c13_withdrawal_{n}",
                        "object": "withdrawal_order",
                        "version": 1,
                        "status": "pending_approval",
                        "merchant_reference": "WD-7",
                        "amount_total_minor": 100_000,
                        "remaining_minor": 100_000,
                        "metadata": metadata,
                    }
                },
            }
        ).encode()
        for n, metadata in enumerate(empty)
    ]
    bodies += [deposit_body(f"evt_{key}", key, 1, "settled", fee_breakdown=fee) for key, fee in fees.items()]
    bodies.append(deposit_body("evt_c13_no_reasons", "c13_no_reasons", 3, "under_review", review={"reasons": []}))
    bodies.append(deposit_body("evt_c13_no_review", "c13_no_review", 3, "under_review"))
    assert shop.post(*bodies) == [200] * len(bodies)
    events = ["evt_c13_0", "evt_c13_1", *(f"evt_{key}" for key in (*fees, *reviews))]
    assert {verdict for _, verdict in shop.verdicts(*events)} == {"advanced"}
    for n, _ in enumerate(empty):
        assert shop.effects(f"c13_withdrawal_{n}") == [
            (f"c13_withdrawal_{n}", "update_local_status", {"ticket": "WD-7", "status": "pending_approval"})
        ]
    assert shop.credits(*fees) == dict.fromkeys(fees, 50_000)
    kept = "SELECT pg_deposit_id, fee_breakdown, fee_breakdown IS NULL FROM pg_deposits WHERE pg_deposit_id = ANY(%s)"
    assert {row[0]: row[1:] for row in shop.rows(kept, list(fees))} == {
        "c13_list": ([], False),
        "c13_object": ({}, False),
        "c13_null": (None, True),
    }
    for key in reviews:
        assert shop.rows(DEPOSIT, key) == [(3, "under_review")]
        assert [(effect, payload["message"]) for _, effect, payload in shop.effects(key)] == [
            ("show_pending_review", None)
        ]
    assert shop.rows(SET_ASIDE, events) == []


@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "apart"])
@pytest.mark.case(14)
def test_case_14_the_same_moment_in_both_events(shop: Shop, together: bool) -> None:
    """settled v2, then created v1, with one created_at: v2 stays, v1 is late and has no effect."""
    deposit = f"c14_{together}"
    second, first = f"evt_{deposit}_2", f"evt_{deposit}_1"
    shop.correlate(deposit)
    bodies = [deposit_body(second, deposit, 2, "settled"), deposit_body(first, deposit, 1, "open")]
    if together:
        assert shop.post(*bodies) == [200, 200]
    else:
        assert shop.post(bodies[0]) == [200]
        shop.verdicts(second)
        assert shop.post(bodies[1]) == [200]
    assert shop.verdicts(second, first) == [(second, "advanced"), (first, "late")]
    assert shop.rows(DEPOSIT, deposit) == [(2, "settled")]
    assert [effect for _, effect, _ in shop.effects(deposit)] == ["release_goods"]
    assert shop.credits(deposit) == {deposit: 50_000}


@pytest.mark.case(15)
def test_case_15_version_0_and_a_version_that_is_text(shop: Shop) -> None:
    """0 makes the row; 90 advances it; 45 is late; "91" is set aside with its bytes and the row stays."""
    shop.correlate("c15")
    assert shop.post(deposit_body("evt_c15_0", "c15", 0, "open")) == [200]
    assert shop.verdicts("evt_c15_0") == [("evt_c15_0", "advanced")]
    assert shop.rows(DEPOSIT, "c15") == [(0, "open")]
    assert [(effect, payload["status"]) for _, effect, payload in shop.effects("c15")] == [
        ("update_order_status", "open")
    ]
    text = deposit_body("evt_c15_91", "c15", "91", "expired")
    assert shop.post(
        deposit_body("evt_c15_90", "c15", 90, "slip_received"), deposit_body("evt_c15_45", "c15", 45, "open"), text
    ) == [200, 200, 200]
    assert shop.verdicts("evt_c15_90", "evt_c15_45") == [("evt_c15_90", "advanced"), ("evt_c15_45", "late")]
    shop.await_rows([("envelope_version", text)], SET_ASIDE, ["evt_c15_91"])
    assert shop.rows(DEPOSIT, "c15") == [(90, "slip_received")]
    assert len(shop.effects("c15")) == 2


@pytest.mark.case(16)
def test_case_16_amounts_that_cannot_be(shop: Shop) -> None:
    """Nothing received, a negative order, a fee above what came: set aside without effect; the neighbours go on."""
    wrong = {
        "c16_zero": money(ordered=100, transferred=0, fee=0),
        "c16_negative": money(ordered=-100, transferred=100, fee=0),
        "c16_fee": money(ordered=100, transferred=100, fee=101),
    }
    right = {
        "c16_good": money(ordered=100, transferred=300, fee=1),
        "c16_all_fee": money(ordered=80, transferred=80, fee=80),
    }
    shop.correlate(*wrong, *right)
    keys = ["c16_zero", "c16_good", "c16_negative", "c16_all_fee", "c16_fee"]
    bodies = [deposit_body(f"evt_{key}", key, 1, "settled", **(wrong | right)[key]) for key in keys]
    assert shop.post(*bodies) == [200] * 5
    shop.verdicts("evt_c16_good", "evt_c16_all_fee")
    events = [f"evt_{key}" for key in sorted(wrong)]
    expected = [("money_rule", bodies[keys.index(key)]) for key in sorted(wrong)]
    shop.await_rows(expected, SET_ASIDE, events)
    assert shop.credits(*keys) == {"c16_good": 100, "c16_all_fee": 80}
    assert shop.rows("SELECT balance_minor FROM pg_user_balances WHERE user_id = 'usr_c16_all_fee'") == [(80,)]
    effects = Counter((deposit, effect) for deposit, effect, _ in shop.effects(*keys))
    assert effects == {("c16_good", "release_goods"): 1, ("c16_all_fee", "release_goods"): 1}
    assert shop.rows("SELECT count(*) FROM pg_deposits WHERE pg_deposit_id = ANY(%s)", list(wrong)) == [(0,)]


@pytest.mark.case(17)
def test_case_17_fifty_times_at_the_same_moment(shop: Shop) -> None:
    """20 deposits, 50 posts each over 50 connections: 1,000 answers of 200, and each counts once."""
    deposits = [f"c17_{number}" for number in range(20)]
    shop.correlate(*deposits)
    bodies = {deposit: deposit_body(f"evt_{deposit}", deposit, 1, "settled") for deposit in deposits}
    statuses = Counter(shop.post_at_once([bodies[d] for d in deposits for _ in range(50)], connections=50))
    assert statuses == {200: 1000}
    inbox = "SELECT count(*) FROM pg_webhook_inbox WHERE object_id LIKE 'c17!_%' ESCAPE '!' AND verdict = 'advanced'"
    again = "SELECT count(*) FROM redeliveries WHERE event_id LIKE 'evt!_c17!_%' ESCAPE '!'"
    shop.await_rows([(980,)], again)
    assert shop.rows(inbox) == [(20,)]
    assert shop.credits(*deposits) == dict.fromkeys(deposits, 50_000)
    topic = shop.names.effect("release_goods")
    await_true(lambda: len(shop.published(topic, *deposits)) >= 20, PATIENCE_SECONDS, "20 release_goods")
    found = Counter(header_of(message, "ce_id") for message in shop.published(topic, *deposits))
    assert found == {f"deposit:{deposit}:release_goods": 1 for deposit in deposits}
    delivered = read_to_end(shop.kafka, shop.names.events, timeout_seconds=READ_SECONDS)
    assert sum((message.key() or b"").startswith(b"c17_") for message in delivered) == 1000


@pytest.mark.case(19)
def test_case_19_three_events_wait_for_their_correlation(shop: Shop) -> None:
    """They wait in the inbox while others go on; within a second of the row they are applied in order, each once."""
    shop.correlate("c19_other")
    waiting = [
        deposit_body("evt_c19_1", "c19", 1, "slip_received"),
        deposit_body("evt_c19_3", "c19", 3, "settled"),
        deposit_body("evt_c19_2", "c19", 2, "under_review"),
    ]
    assert shop.post(*(body for body in waiting for _ in range(2))) == [200] * 6
    assert shop.post(deposit_body("evt_c19_other", "c19_other", 1, "settled")) == [200]
    shop.verdicts("evt_c19_other")
    parked = "SELECT count(*) FROM pg_webhook_inbox WHERE object_id = 'c19' AND processed_at IS NULL"
    shop.await_rows([(3,)], parked)
    shop.await_rows([(3,)], "SELECT count(*) FROM redeliveries WHERE event_id LIKE 'evt!_c19!__' ESCAPE '!'")
    await_true(lambda: shop.metric("sink", "tallyhook_sink_parked") == 3, PATIENCE_SECONDS, "the gauge at 3")
    told = json.loads(shop.command("parked", "--json").stdout)
    assert (told["total"], {e["object_id"] for e in told["events"]}) == (3, {"c19"})
    assert shop.rows(parked) == [(3,)]
    assert shop.credits("c19", "c19_other") == {"c19_other": 50_000}

    written_at = shop.correlate("c19")
    assert shop.verdicts("evt_c19_1", "evt_c19_3", "evt_c19_2") == [
        ("evt_c19_1", "advanced"),
        ("evt_c19_3", "advanced"),
        ("evt_c19_2", "late"),
    ]
    ((last,),) = shop.rows("SELECT max(processed_at) FROM pg_webhook_inbox WHERE object_id = 'c19'")
    assert last - written_at < timedelta(seconds=1)
    assert shop.rows(DEPOSIT, "c19") == [(3, "settled")]
    assert shop.credits("c19") == {"c19": 50_000}
    effects = [(effect, payload.get("status")) for _, effect, payload in shop.effects("c19")]
    assert effects == [("update_order_status", "slip_received"), ("release_goods", None)]
