"""The wallet: what its buckets hold by the recorded movements, against the gateway's balance and its own running one.

A movement takes its amount from bucket_from and gives it to bucket_to; a bucket that is null lies outside of the
wallet. That the wallet was empty before the first recorded movement is assumed.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import msgspec

from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.reconcile.difference import Compared, Difference, Finding, Surroundings

PAGE_MOVEMENTS = 1000
TRIES = 5
_SUFFIX = "_minor"


@dataclass(frozen=True, slots=True)
class Movement:
    """One recorded movement (satang).

    Args:
        balance_after: what the gateway said that its buckets held after it; nothing where it did not say.
    """

    id: str
    created_at: datetime
    amount_minor: int
    bucket_from: str | None
    bucket_to: str | None
    balance_after: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Off:
    """The first movement after which the sums are not what the gateway said.

    Args:
        buckets: by bucket the sum here and what was said.
    """

    id: str
    created_at: datetime
    buckets: Mapping[str, tuple[int, int]]


def first_off(movements: Iterable[Movement]) -> Off | None:
    """Adds movements up in order and stops at the first one that is off.

    Movements of one instant have no known order: it is enough that one of them tells the sums after all of them.
    """
    held: defaultdict[str, int] = defaultdict(int)
    for _, together in groupby(movements, key=lambda movement: movement.created_at):
        group = list(together)
        for movement in group:
            if movement.bucket_from is not None:
                held[movement.bucket_from] -= movement.amount_minor
            if movement.bucket_to is not None:
                held[movement.bucket_to] += movement.amount_minor
        telling = [movement for movement in group if movement.balance_after]
        offs = [_off(movement, held) for movement in telling]
        if offs and all(off.buckets for off in offs):
            return offs[-1]
    return None


def _off(movement: Movement, held: Mapping[str, int]) -> Off:
    buckets = {
        bucket: (held.get(bucket, 0), told)
        for bucket, told in movement.balance_after.items()
        if held.get(bucket, 0) != told
    }
    return Off(movement.id, movement.created_at, buckets)


class BalanceCheck:
    """Compares the buckets of one merchant."""

    def __init__(self, api: GatewayApi, around: Surroundings) -> None:
        self._api, self._around = api, around

    def run(self) -> Iterator[Finding]:
        """Differences of buckets with the events of the first movement that is off, then that movement."""
        off = self._first_off()
        if off is not None:
            self._around.wait()  # one that was on its way may have come between
            off = self._first_off()
        events = () if off is None else self._around.events(off.id)
        sums, balance = self._settled_sums()
        for bucket in sorted(sums.keys() | balance.keys()):
            here, there = sums.get(bucket, 0), balance.get(bucket, 0)
            if here != there:
                detail = "the sum of the recorded movements, and the gateway's balance"
                if off is not None and bucket in off.buckets:
                    detail += f"; off since {off.id}"
                yield Difference("bucket", bucket, "differs", f"{bucket}{_SUFFIX}", here, there, detail, events)
        if off is not None:
            for bucket, (here, there) in sorted(off.buckets.items()):
                detail = f"the first that is off, created {off.created_at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC"
                member = f"balance_after.{bucket}{_SUFFIX}"
                yield Difference("balance_transaction", off.id, "differs", member, here, there, detail, events)
        buckets = len(sums.keys() | balance.keys())
        yield Compared("bucket", buckets, buckets)

    def _settled_sums(self) -> tuple[dict[str, int], dict[str, int]]:
        """Sums and balance of one time: a balance that moves while it is compared is asked for again."""
        sums, balance = dict[str, int](), dict[str, int]()
        for turn in range(TRIES):
            if turn:
                self._around.wait()
            balance = self._api.balance()
            rows = self._around.rows("sums", {"merchant": self._around.merchant})
            sums = {bucket: int(amount) for bucket, amount in rows}
            if all(sums.get(bucket, 0) == balance.get(bucket, 0) for bucket in sums.keys() | balance.keys()):
                break
            if turn and self._api.balance() == balance:
                break
        return sums, balance

    def _first_off(self) -> Off | None:
        return first_off(self._movements())

    def _movements(self) -> Iterator[Movement]:
        wanted: dict[str, Any] = {
            "merchant": self._around.merchant,
            "created_at": "-infinity",
            "btxn_id": "",
            "limit": PAGE_MOVEMENTS,
        }
        while True:
            rows = self._around.rows("movements", wanted)
            for btxn_id, created_at, amount, bucket_from, bucket_to, told in rows:
                yield Movement(btxn_id, created_at, amount, bucket_from, bucket_to, balance_after(told))
            if len(rows) < PAGE_MOVEMENTS:
                return
            wanted |= {"created_at": rows[-1][1], "btxn_id": rows[-1][0]}


def balance_after(text: str | None) -> dict[str, int]:
    """Satang by bucket of a stored balance_after; members of another shape say nothing."""
    found = msgspec.json.decode(text) if text is not None else None
    members = found.items() if isinstance(found, dict) else ()
    return {
        name.removesuffix(_SUFFIX): value for name, value in members if name.endswith(_SUFFIX) and type(value) is int
    }
