"""A seeded stream of realistic deposit events, shared by the benchmarks: about 1.1 KB each, a quarter late or repeated.

The same seed gives the same bytes, so two programs that are compared get the same work.
"""

import dataclasses
import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

import msgspec

from schemas.headers import EventHeaders, Header, verdict_headers

START = datetime(2026, 3, 1, tzinfo=UTC)
USERS = 5_000
LATE_SHARE = 0.2
REPEATED_SHARE = 0.17

LIVES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (58, ("open", "slip_received", "settled")),
    (12, ("open", "slip_received", "under_review", "settled")),
    (8, ("open", "expired")),
    (4, ("open", "expired", "slip_received", "settled")),
    (6, ("open", "canceled")),
    (5, ("open", "slip_received", "under_review", "rejected")),
    (7, ("open", "slip_received", "settled", "reversed")),
)
"""Weight and statuses of each life."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """What the merchant's own service knows of a deposit."""

    pg_deposit_id: str
    merchant_reference: str
    our_order_id: str
    our_user_id: str


@dataclass(frozen=True, slots=True)
class BenchEvent:
    """One delivery of a deposit event.

    Args:
        partition: that of the object.
        body: the JSON text, unsigned.
        arrival: its place in the whole stream; unlike the id it is not repeated.
    """

    event_id: str
    type: str
    object_id: str
    status: str
    version: int
    sequence: int
    partition: int
    body: bytes
    arrival: int = 0

    def headers(self, received_at: datetime) -> list[Header]:
        """As they stand on a record of `state-changes`."""
        envelope = EventHeaders(
            id=self.event_id,
            type=self.type,
            source="/gateway",
            subject=self.object_id,
            time="2026-03-01T00:00:00Z",
            object_kind="deposit_order",
            status=self.status,
            version=self.version,
            merchant="mer_bench",
            sequence=self.sequence,
            livemode=True,
            received_at=received_at.isoformat(),
            origin="webhook",
            key_id="bench",
        )
        return [*envelope.encode(), *verdict_headers("advanced", None, None, self.partition, self.arrival)]


@dataclass(frozen=True, slots=True)
class Workload:
    """Correlations that are known beforehand, and deliveries in the order in which they come."""

    correlations: list[Correlation]
    deliveries: list[BenchEvent]


def workload(seed: int, deliveries: int, *, partitions: int = 8, name: str = "b") -> Workload:
    """Makes exactly `deliveries` deliveries.

    Args:
        seed: same seed, same bytes.
        partitions: over which the deposits are spread by a hash of their ids.
        name: part of every id, so that workloads of one run never share a deposit.
    """
    chance = random.Random(seed)
    correlations: list[Correlation] = []
    waiting: list[tuple[float, int, BenchEvent]] = []
    arrived: list[BenchEvent] = []
    number = 0
    while len(arrived) < deliveries:
        correlation = _correlation(len(correlations), name, chance)
        correlations.append(correlation)
        begins = float(len(correlations))
        for event in _life(correlation, number, partitions, chance):
            number += 1
            begins += chance.expovariate(1 / 40)
            late_by = chance.expovariate(1 / 200) + 60 if chance.random() < LATE_SHARE else 0.0
            heapq.heappush(waiting, (begins + late_by, number, event))
            if chance.random() < REPEATED_SHARE:
                heapq.heappush(waiting, (begins + late_by + chance.expovariate(1 / 100), -number, event))
        while waiting and waiting[0][0] < len(correlations):
            arrived.append(heapq.heappop(waiting)[2])
    return Workload(
        correlations,
        [dataclasses.replace(event, arrival=place) for place, event in enumerate(arrived[:deliveries])],
    )


def _correlation(number: int, name: str, chance: random.Random) -> Correlation:
    return Correlation(
        f"dep_{name}{number:08d}{chance.getrandbits(48):012x}",
        f"ref_{name}{number:08d}",
        f"ord_{name}{number:08d}",
        f"usr_{chance.randrange(USERS):05d}",
    )


def _life(correlation: Correlation, number: int, partitions: int, chance: random.Random) -> Iterator[BenchEvent]:
    weights = [weight for weight, _ in LIVES]
    statuses = chance.choices([statuses for _, statuses in LIVES], weights)[0]
    ordered = chance.randrange(100, 50_000) * 100
    transferred = ordered + (chance.randrange(1, 100) * 100 if chance.random() < 0.04 else 0)
    fee = ordered * 15 // 1000
    partition = crc32(correlation.pg_deposit_id.encode()) % partitions
    for version, status in enumerate(statuses, start=1):
        sequence = number + version
        event_id = f"evt_{correlation.pg_deposit_id[4:]}_{version:02d}"
        o = _snapshot(correlation, version, status, ordered, transferred, fee)
        event = {
            "id": event_id,
            "object": "event",
            "type": f"deposit.{status}",
            "api_version": "2026-01-01",
            "livemode": True,
            "created_at": (START + timedelta(seconds=sequence)).isoformat(),
            "sequence": sequence,
            "account": {"merchant_id": "mer_bench", "white_label_id": "wl_bench"},
            "data": {"object": o, "previous_attributes": {"status": statuses[max(0, version - 2)]}},
        }
        yield BenchEvent(
            event_id, f"deposit.{status}", o["id"], status, version, sequence, partition, msgspec.json.encode(event)
        )


def _snapshot(
    correlation: Correlation, version: int, status: str, ordered: int, transferred: int, fee: int
) -> dict[str, Any]:
    paid = status in ("settled", "reversed")
    o: dict[str, Any] = {
        "id": correlation.pg_deposit_id,
        "object": "deposit_order",
        "version": version,
        "status": status,
        "is_terminal": status in ("settled", "reversed", "rejected", "canceled"),
        "merchant_reference": correlation.merchant_reference,
        "currency": "THB",
        "ordered_amount_minor": ordered,
        "channel": {
            "type": "bank_transfer",
            "bank_code": "004",
            "account_masked": "xxx-x-x1234-x",
            "name_th": "บริษัท ตัวอย่าง จำกัด",
        },
        "payer": {"bank_code": "014", "account_masked": "xxx-x-x9876-x", "name_th": "นาย สมมติ ใจดี"},
        "fee_breakdown": {
            "rate_bps": 150,
            "fixed_minor": 0,
            "vat_included": True,
            "lines": [{"code": "mdr", "minor": fee}],
        },
        "metadata": {"cart": correlation.our_order_id, "note": "สั่งซื้อผ่านหน้าเว็บ", "session": "9f2c6b1e7d3a4850"},
        "links": {"self": f"/v1/pay/deposits/{correlation.pg_deposit_id}"},
    }
    if paid:
        o |= {
            "transferred_amount_minor": transferred,
            "amount_received_minor": ordered,
            "fee_total_minor": fee,
            "credited_amount_minor": ordered - fee,
            "balance_transaction_id": f"btxn_{correlation.pg_deposit_id[4:]}",
            "clearing_available_at": "2026-03-03T03:00:00+07:00",
            "partial": False,
        }
    if paid and transferred > ordered:
        o["overpayment"] = {
            "claim_id": f"clm_{correlation.pg_deposit_id[4:]}",
            "cause": "same_transfer_excess",
            "amount_minor": transferred - ordered,
            "slip_received_at": "2026-03-01T03:33:10Z",
            "status": "open",
            "action_required": "contact_support",
        }
    if status == "expired":
        o["late_slip_accepted_until"] = "2026-03-02T03:33:15Z"
    if status == "canceled":
        o["cancel_reason_code"] = "by_user"
    if status == "under_review":
        o["review"] = {"reasons": [{"display_th": "กำลังตรวจสอบสลิป", "display_en": "The slip is being checked"}]}
    if status == "rejected":
        o["rejection"] = {"display_th": "ชื่อผู้โอนไม่ตรง", "display_en": "The payer's name differs"}
    return o
