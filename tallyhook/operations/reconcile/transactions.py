"""Balance transactions: every page of the gateway's list beside the records, then the records that it did not name.

They never change, so that other content is a difference at once; what is missing on one side is looked for once more.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tallyhook.operations.gateway_api import GatewayApi, ListedObject, Listing
from tallyhook.operations.gateway_http import UnexpectedAnswer
from tallyhook.operations.reconcile.columns import TRANSACTION_COLUMNS, Unreadable, transaction, unlike
from tallyhook.operations.reconcile.difference import Compared, Difference, Finding, Surroundings
from tallyhook.operations.reconcile.orders import PAGE_IDS, SUSPECTS_MAX
from tallyhook.operations.reconcile.seen_ids import SeenIds

LISTING: Listing = "balance/transactions"


class TransactionCheck:
    """Compares the balance transactions of one merchant."""

    def __init__(self, api: GatewayApi, around: Surroundings) -> None:
        self._api, self._around = api, around
        self._difference = partial(around.difference, "balance_transaction")
        self._after: str | None = None
        self._missing_here: list[str] = []
        self._missing_there: list[str] = []
        self._done = 0

    def run(self) -> Iterator[Finding]:
        """Differences as they are found. Raises what the API's calls raise."""
        total = self._around.count("count_transactions", (self._around.merchant,))
        with SeenIds() as seen:
            yield from self._list(seen, total)
            for ids in self._here():
                self._missing_there += seen.without(ids)
                if len(self._missing_there) >= SUSPECTS_MAX:
                    yield from self._look_again(seen, total)
            yield from self._look_again(seen, total)

    def _list(self, seen: SeenIds, total: int) -> Iterator[Finding]:
        """From where the list was left to its end."""
        for page in self._api.pages(LISTING, self._after):
            if not page:
                return
            self._after = page[-1].id
            if not seen.add(listed.id for listed in page):
                raise UnexpectedAnswer("the gateway's list of balance transactions names the same ids again")
            yield from self._compare(page)
            self._done += len(page)
            yield Compared("balance_transaction", self._done, max(total, self._done))
            if len(self._missing_here) >= SUSPECTS_MAX:
                self._around.wait()
                yield from self._still_missing_here()

    def _compare(self, page: Sequence[ListedObject]) -> Iterator[Difference]:
        rows = self._rows([listed.id for listed in page])
        for listed in page:
            try:
                told = transaction(listed)
            except Unreadable as failure:
                yield self._difference(listed.id, "unreadable", detail=str(failure))
                continue
            row = rows.get(listed.id)
            if row is None:
                self._missing_here.append(listed.id)
                continue
            for member, here, there in unlike(TRANSACTION_COLUMNS, row, told):
                yield self._difference(listed.id, "differs", member, here, there)

    def _look_again(self, seen: SeenIds, total: int) -> Iterator[Finding]:
        if self._missing_here or self._missing_there:
            self._around.wait()
            yield from self._list(seen, total)
        missing, self._missing_there = self._missing_there, []
        for btxn_id in seen.without(missing):
            amount = self._rows([btxn_id]).get(btxn_id, {}).get("amount_minor")
            yield self._difference(btxn_id, "missing there", "amount_minor", amount, None)
        yield from self._still_missing_here()

    def _still_missing_here(self) -> Iterator[Difference]:
        missing, self._missing_here = self._missing_here, []
        known = self._rows(missing)
        for btxn_id in missing:
            if btxn_id not in known:
                yield self._difference(btxn_id, "missing here")

    def _rows(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        names = [column.name for column in TRANSACTION_COLUMNS]
        found = self._around.rows("transactions", (list(ids),)) if ids else []
        return {row[0]: dict(zip(names, row[1:], strict=True)) for row in found}

    def _here(self) -> Iterator[list[str]]:
        after = ""
        while True:
            wanted = {"after": after, "merchant": self._around.merchant, "limit": PAGE_IDS}
            rows = self._around.rows("transactions_after", wanted)
            if not rows:
                return
            after = rows[-1][0]
            yield [row[0] for row in rows]
