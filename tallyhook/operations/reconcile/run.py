"""One run of reconcile: the checks that were asked for, one after the other."""

import threading
from collections.abc import Collection, Iterator
from typing import Literal, get_args

from tallyhook.clock import Clock
from tallyhook.operations.gaps import GapTable
from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.gateway_http import Stopped
from tallyhook.operations.reconcile.balance import BalanceCheck
from tallyhook.operations.reconcile.difference import Finding, Surroundings
from tallyhook.operations.reconcile.missing_events import EventCheck
from tallyhook.operations.reconcile.orders import DEPOSITS, WITHDRAWALS, OrderCheck
from tallyhook.operations.reconcile.transactions import TransactionCheck
from tallyhook.postgres import Connection, Queries

Part = Literal["events", "deposits", "withdrawals", "transactions", "balance"]
PARTS: tuple[Part, ...] = get_args(Part)


def reconcile(
    connection: Connection,
    schema: str,
    api: GatewayApi,
    merchant: str,
    parts: Collection[Part],
    *,
    patience_seconds: float,
    clock: Clock,
    stopping: threading.Event,
) -> Iterator[Finding]:
    """Differences as they are found.

    Args:
        connection: autocommit, used by nobody else.
        merchant: whose account the API's key is of.
        patience_seconds: how long what looks different may take to come, before it counts.
        stopping: once set, the run ends with Stopped.

    Raises:
        Stopped, GatewayUnavailable, GatewayRefused, UnexpectedAnswer.
    """

    def wait() -> None:
        if stopping.wait(patience_seconds):
            raise Stopped("stopped; nothing was changed")

    queries = Queries("tallyhook.operations.reconcile", "reconcile.sql", schema)
    around = Surroundings(connection, queries, merchant, clock.now, wait)
    if "events" in parts:
        yield from EventCheck(api, around, GapTable(connection, schema)).run()
    if "deposits" in parts:
        yield from OrderCheck(DEPOSITS, api, around).run()
    if "withdrawals" in parts:
        yield from OrderCheck(WITHDRAWALS, api, around).run()
    if "transactions" in parts:
        yield from TransactionCheck(api, around).run()
    if "balance" in parts:
        yield from BalanceCheck(api, around).run()
