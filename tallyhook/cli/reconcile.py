"""`tallyhook reconcile`: compares what is recorded with the gateway's API."""

import json
import threading
from collections import Counter
from dataclasses import asdict
from typing import Any

import typer

from tallyhook.cli.differences import shown_events, with_progress
from tallyhook.cli.escaping import escaped
from tallyhook.cli.json_stream import JsonStream
from tallyhook.cli.output import JsonOption, console
from tallyhook.cli.stopping import signals_set
from tallyhook.clock import SystemClock
from tallyhook.operations.gaps import GapTable, merchant_of
from tallyhook.operations.gateway_api import GatewayApi
from tallyhook.operations.gateway_http import GatewayHttp
from tallyhook.operations.reconcile.difference import Compared, Difference, Finding
from tallyhook.operations.reconcile.run import PARTS
from tallyhook.operations.reconcile.run import reconcile as run
from tallyhook.postgres import connect
from tallyhook.settings import load


def reconcile(
    events: bool = typer.Option(False, "--events", help="Only events that never came; may be combined."),
    deposits: bool = typer.Option(False, "--deposits", help="Only deposits; may be combined."),
    withdrawals: bool = typer.Option(False, "--withdrawals", help="Only withdrawals; may be combined."),
    transactions: bool = typer.Option(False, "--transactions", help="Only balance transactions; may be combined."),
    balance: bool = typer.Option(False, "--balance", help="Only the wallet's buckets; may be combined."),
    merchant: str | None = typer.Option(None, "--merchant", help="Whose account; the API's key must be theirs."),
    patience: float = typer.Option(3.0, min=0, max=3600, help="Seconds that a difference is given to settle."),
    as_json: JsonOption = False,
) -> None:
    """Compare events, deposits, withdrawals, balance transactions and buckets with the gateway's API, page by page.

    Each difference is told with both values and the events that led there; nothing is changed. What differs is looked
    at once more before it counts, so that an event on its way is no difference. Exit code 1 when there is one.

    Example: tallyhook reconcile

    Example: tallyhook reconcile --transactions --balance --json
    """
    settings, stopping, clock = load(), threading.Event(), SystemClock()
    chosen = dict(zip(PARTS, (events, deposits, withdrawals, transactions, balance), strict=True))
    parts = [part for part in PARTS if chosen[part]] or list(PARTS)
    api = GatewayApi(GatewayHttp(settings.gateway_api, clock=clock, stopping=stopping))
    schema = settings.installation.schema_name
    report = Report(as_json)
    with connect(settings.database, "reconcile") as connection, signals_set(stopping):
        whose = merchant_of(GapTable(connection, schema), settings, merchant)
        findings = run(connection, schema, api, whose, parts, patience_seconds=patience, clock=clock, stopping=stopping)
        report.begin()
        whole = False
        try:
            for finding in with_progress(findings, _tally):
                report.tell(finding)
            whole = True
        finally:
            report.end(merchant=whose, whole=whole)
            api.close()
    if report.differences:
        raise typer.Exit(1)


class Report:
    """Tells each difference, and at the end how much was compared."""

    def __init__(self, as_json: bool) -> None:
        self._stream = JsonStream("differences") if as_json else None
        self._compared: dict[str, int] = {}
        self.differences: Counter[str] = Counter()

    def begin(self) -> None:
        """Opens the document."""
        if self._stream is not None:
            self._stream.begin()

    def tell(self, finding: Finding) -> None:
        """One difference; or how far the comparison is."""
        if isinstance(finding, Compared):
            self._compared[finding.kind] = finding.done
            return
        self.differences[finding.what] += 1
        if self._stream is not None:
            self._stream.add(asdict(finding))
        else:
            print(line(finding))

    def end(self, *, merchant: str, whole: bool) -> None:
        """The sums."""
        if self._stream is not None:
            self._stream.end(
                {
                    "merchant": merchant,
                    "whole": whole,
                    "compared": self._compared,
                    "counts": dict(self.differences),
                }
            )
            return
        compared = ", ".join(f"{count} {kind.replace('_', ' ')}s" for kind, count in self._compared.items())
        found = ", ".join(f"{count} {what}" for what, count in self.differences.items())
        console.print(f"compared: {compared or 'nothing'}", markup=False)
        if whole or found:
            console.print(f"differences: {found or 'none'}", markup=False)


def line(found: Difference) -> str:
    """A difference in one line; what came from outside is escaped."""
    values = ""
    if found.member is not None:
        values = f"  {escaped(found.member)}: here {_value(found.here)}, there {_value(found.there)}"
    detail = f"  ({escaped(found.detail)})" if found.detail else ""
    return f"{found.kind} {escaped(found.id)}  {found.what}{values}{detail}  events: {shown_events(found.events)}"


def _value(value: Any) -> str:
    return "nothing" if value is None else escaped(json.dumps(value, ensure_ascii=False, default=str))


def _tally(finding: Finding) -> tuple[str, int, int] | None:
    return (finding.kind, finding.done, finding.total) if isinstance(finding, Compared) else None
