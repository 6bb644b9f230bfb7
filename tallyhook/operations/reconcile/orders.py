"""Deposits and withdrawals: every page of the gateway's list beside the rows of its ids, then the rows it did not name.

What looks different is looked at once more a little later: an event that was on its way is no difference. Memory stays
the same however long the lists are.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from tallyhook.operations.gateway_api import GatewayApi, ListedObject, Orders
from tallyhook.operations.gateway_http import UnexpectedAnswer
from tallyhook.operations.reconcile import columns
from tallyhook.operations.reconcile.columns import Column, Told, Unreadable, unlike
from tallyhook.operations.reconcile.difference import Compared, Difference, Finding, Surroundings
from tallyhook.operations.reconcile.seen_ids import SeenIds

SUSPECTS_MAX = 1000
PAGE_IDS = 1000

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OrderKind:
    """How one kind is listed, read and found."""

    kind: Literal["deposit", "withdrawal"]
    listing: Orders
    columns: Sequence[Column]
    read: Callable[[ListedObject], Told]


DEPOSITS = OrderKind("deposit", "deposits", columns.DEPOSIT_COLUMNS, columns.deposit)
WITHDRAWALS = OrderKind("withdrawal", "withdrawals", columns.WITHDRAWAL_COLUMNS, columns.withdrawal)


class OrderCheck:
    """Compares one kind of order."""

    def __init__(self, kind: OrderKind, api: GatewayApi, around: Surroundings) -> None:
        self._kind, self._api, self._around = kind, api, around
        self._difference = partial(around.difference, kind.kind)
        self._suspects: list[ListedObject] = []

    def run(self) -> Iterator[Finding]:
        """Differences as they are found. Raises what the API's calls raise."""
        total, done = self._around.count(f"count_{self._kind.listing}"), 0
        with SeenIds() as seen:
            for page in self._api.pages(self._kind.listing):
                if page and not seen.add(listed.id for listed in page):
                    raise UnexpectedAnswer(f"the gateway's list of {self._kind.listing} names the same ids again")
                yield from self._look(page)
                done += len(page)
                yield Compared(self._kind.kind, done, max(total, done))
            for ids in self._here():
                for object_id in seen.without(ids):
                    # It may have been made after the list was begun, or be missing there.
                    found = self._api.order(self._kind.listing, object_id)
                    if found is not None:
                        yield from self._look([found])
                    elif not self._is_of_another_merchant(object_id):
                        version = self._rows([object_id]).get(object_id, {}).get("pg_version")
                        yield self._difference(object_id, "missing there", "version", version, None)
        yield from self._look_again()

    def _look(self, page: Sequence[ListedObject]) -> Iterator[Finding]:
        rows = self._rows([listed.id for listed in page])
        for listed in page:
            try:
                told = self._kind.read(listed)
            except Unreadable as failure:
                yield self._difference(listed.id, "unreadable", detail=str(failure))
                continue
            row = rows.get(listed.id)
            if row is None or row["pg_version"] != told.version or unlike(self._kind.columns, row, told):
                self._suspects.append(listed)
        if len(self._suspects) >= SUSPECTS_MAX:
            yield from self._look_again()

    def _look_again(self) -> Iterator[Difference]:
        suspects, self._suspects = self._suspects, []
        if suspects:
            self._around.wait()
        for listed in suspects:
            yield from self._judge(listed)

    def _judge(self, listed: ListedObject) -> Iterator[Difference]:
        """A row that has reached the version which was listed has only been moving; then both are read once more."""
        version = self._kind.read(listed).version or 0
        row = self._rows([listed.id]).get(listed.id)
        if row is None:
            yield self._difference(listed.id, "missing here", "version", None, version)
            return
        if row["pg_version"] < version:
            hours = (self._around.now() - row["updated_at"]).total_seconds() / 3600
            detail = f"the row is {max(0.0, hours):.1f} h old"
            yield self._difference(listed.id, "behind", "version", row["pg_version"], version, detail)
            return
        again = self._api.order(self._kind.listing, listed.id)
        if again is None:
            yield self._difference(listed.id, "missing there", "version", row["pg_version"], None)
            return
        try:
            told = self._kind.read(again)
        except Unreadable as failure:
            yield self._difference(listed.id, "unreadable", detail=str(failure))
            return
        if told.version is not None and told.version < row["pg_version"]:
            yield self._difference(listed.id, "ahead", "version", row["pg_version"], told.version)
        elif told.version == row["pg_version"]:
            for member, here, there in unlike(self._kind.columns, row, told):
                yield self._difference(listed.id, "differs", member, here, there, f"both are version {told.version}")

    def _rows(self, ids: Sequence[str]) -> dict[str, Row]:
        names = ("pg_version", "updated_at", *(column.name for column in self._kind.columns))
        found = self._around.rows(self._kind.listing, (list(ids),)) if ids else []
        return {row[0]: dict(zip(names, row[1:], strict=True)) for row in found}

    def _here(self) -> Iterator[list[str]]:
        after = ""
        while True:
            rows = self._around.rows(f"{self._kind.listing}_after", {"after": after, "limit": PAGE_IDS})
            if not rows:
                return
            after = rows[-1][0]
            yield [row[0] for row in rows]

    def _is_of_another_merchant(self, object_id: str) -> bool:
        rows = self._around.rows("merchant_of", (object_id,))
        return bool(rows) and rows[0][0] != self._around.merchant
