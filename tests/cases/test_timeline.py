"""Cases from the life of webhook receivers: what an end user reads, in the time of the place where they are."""

import json
from collections.abc import Sequence

import pytest

from tests.cases.shop import PATIENCE_SECONDS, Shop, deposit_body, header_of
from tests.running import MERCHANT, await_true
from tests.unit.packaging.tree import ROOT


@pytest.mark.case(18)
def test_case_18_one_order_with_two_deposits(shop: Shop) -> None:
    """The new one settles, the old one expires: one credit, one release; the failure is the old one's alone."""
    for deposit in ("dep_old", "dep_new"):
        shop.rows(
            "INSERT INTO pg_deposit_correlations (pg_deposit_id, merchant_reference, our_order_id, our_user_id)"
            " VALUES (%s, %s, 'ord_5', 'usr_5') RETURNING 1",
            deposit,
            f"ref_{deposit}",
        )
    settled = deposit_body("evt_c18_new", "dep_new", 3, "settled")
    expired = deposit_body("evt_c18_old", "dep_old", 2, "expired", is_terminal=True)
    assert shop.post(settled, expired) == [200, 200]
    assert shop.verdicts("evt_c18_new", "evt_c18_old") == [("evt_c18_new", "advanced"), ("evt_c18_old", "advanced")]
    assert shop.credits("dep_old", "dep_new") == {"dep_new": 50_000}
    goods = {"order_id": "ord_5", "partial": False, "received": 50_000, "ordered": 50_000}
    assert shop.effects("dep_new") == [("dep_new", "release_goods", goods)]
    assert shop.effects("dep_old") == [("dep_old", "fail_order", {"order_id": "ord_5", "reason": "expired"})]
    topic = shop.names.effect("fail_order")
    await_true(lambda: len(shop.published(topic, "dep_old")) == 1, PATIENCE_SECONDS, "fail_order of dep_old")
    (failed,) = shop.published(topic, "dep_old")
    assert header_of(failed, "ce_subject") == "dep_old"
    assert shop.published(topic, "dep_new") == []
    done = shop.command("timeline", "ord_5", "--by", "order", "--json")
    assert done.returncode == 0, done.stderr
    assert {found["page"]["object_id"] for found in json.loads(done.stdout)["objects"]} == {"dep_old", "dep_new"}
    told = (ROOT / "docs" / "effects.md").read_text(encoding="utf-8")
    assert "it says nothing about the second and must not undo\nits release" in told


@pytest.mark.case(26)
def test_case_26_a_fill_on_new_years_eve_and_two_in_the_hour_that_comes_twice(shop: Shop) -> None:
    """00:30 on 1 January in Thai time, 17:30 on 31 December in UTC; in Berlin 02:30 twice, in true order."""
    new_year, autumn = "c26_new_year", "c26_autumn"
    deliver(shop, new_year, ["2026-12-31T17:30:00Z"])
    # The later chunk arrives first.
    deliver(shop, autumn, ["2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z"])
    assert page(shop, new_year)[-2:] == [
        "└ 00:30  +300.00 บาท  ก้อนที่ 1",
        "วันที่ 1 มกราคม 2027 เวลาตามเขต Asia/Bangkok (UTC+07:00)",
    ]
    assert page(shop, new_year, "--tz", "UTC")[-2:] == [
        "└ 17:30  +300.00 บาท  ก้อนที่ 1",
        "วันที่ 31 ธันวาคม 2026 เวลาตามเขต UTC",
    ]
    assert page(shop, autumn, "--tz", "Europe/Berlin", "--lang", "en")[-3:] == [
        "├ 02:30 (UTC+02:00) +300.00 THB  chunk 1",
        "└ 02:30 (UTC+01:00) +300.00 THB  chunk 2",
        "25 October 2026, times in Europe/Berlin (UTC+02:00 / UTC+01:00)",
    ]


@pytest.mark.case(26)
def test_case_26_moments_are_the_same_for_programs(shop: Shop) -> None:
    """Whatever the zone of the page, JSON tells UTC, and the chunks stand in true order."""
    deliver(shop, "c26_json", ["2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z"])
    done = shop.command("timeline", "c26_json", "--tz", "Europe/Berlin", "--json")
    assert done.returncode == 0, done.stderr
    fills = [line for line in json.loads(done.stdout)["objects"][0]["page"]["lines"] if line["role"] == "fill"]
    assert [(fill["number"], fill["at"]) for fill in fills] == [
        (1, "2026-10-25T00:30:00Z"),
        (2, "2026-10-25T01:30:00Z"),
    ]


def deliver(shop: Shop, withdrawal: str, settled_at: Sequence[str]) -> None:
    """Posts a chunk of 300 baht for each moment, in this order, the last one closing the order; waits for them."""
    total = 30_000 * len(settled_at)
    bodies = []
    for number, moment in enumerate(settled_at, start=1):
        filled = 30_000 * number
        body = {
            "id": f"evt_{withdrawal}_{number}",
            "object": "event",
            "type": "withdrawal.filled",
            "api_version": "2026-08-01",
            "livemode": True,
            "created_at": moment,
            "sequence": number,
            "account": {"merchant_id": MERCHANT, "white_label_id": None},
            "data": {
                "object": {
                    "id": withdrawal,
                    "object": "withdrawal_order",
                    "version": number,
                    "status": "settled" if filled == total else "partially_filled",
                    "merchant_reference": f"ref_{withdrawal}",
                    "amount_total_minor": total,
                    "filled_minor": filled,
                    "remaining_minor": 0,
                },
                "fill": {"leg_ref": f"leg_{withdrawal}_{number}", "amount_minor": 30_000, "settled_at": moment},
            },
        }
        bodies.append(json.dumps(body).encode())
    assert shop.post(*bodies) == [200] * len(bodies)
    query = "SELECT count(*) FROM pg_withdrawal_fills WHERE pg_withdrawal_id = %s"
    await_true(lambda: shop.rows(query, withdrawal) == [(len(bodies),)], PATIENCE_SECONDS, f"chunks of {withdrawal}")


def page(shop: Shop, withdrawal: str, *options: str) -> list[str]:
    """The lines that the command prints."""
    done = shop.command("timeline", withdrawal, *options)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
