"""`tallyhook doctor`: is this installation dangerous?"""

import os
from collections.abc import Mapping

import typer

from tallyhook.cli.escaping import escaped
from tallyhook.cli.output import JsonOption, console, errors, print_json
from tallyhook.clock import SystemClock
from tallyhook.operations.doctor.findings import Finding, Report, Severity
from tallyhook.operations.doctor.visit import examine
from tallyhook.settings import load

_WORDS: Mapping[Severity, str] = {"breaks": "BREAKS", "warning": "warning"}


def doctor(as_json: JsonOption = False) -> None:
    """Name every danger of this installation, what it endangers, and what repairs it. Nothing is changed.

    Exit code 0: nothing breaks a promise (there may be warnings). 1: something does. 2: wrong settings, or Kafka,
    PostgreSQL or the gateway's API did not answer.

    Example: tallyhook doctor

    Example: tallyhook doctor --json > findings.json
    """
    report = examine(load(), dict(os.environ), SystemClock())
    if as_json:
        print_json(report.as_json())
    else:
        _print(report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _print(report: Report) -> None:
    for finding in report.findings:
        _print_finding(finding)
    for sentence in report.unseen:
        console.print(f"not looked at: {escaped(sentence)}", markup=False, soft_wrap=True)
    for sentence in report.unreachable:
        errors.print(f"no answer: {escaped(sentence)}", markup=False, soft_wrap=True)
    breaking, warnings = len(report.breaking), len(report.findings) - len(report.breaking)
    verdict = "healthy" if report.exit_code == 0 else "NOT healthy" if breaking else "cannot tell"
    console.print(f"{verdict}: {breaking} that break a promise, {_warnings(warnings)}", markup=False, soft_wrap=True)


def _print_finding(finding: Finding) -> None:
    lines = (
        f"{_WORDS[finding.severity]} {' '.join(finding.promises)}  {finding.id}: {finding.subject}",
        f"  found:     {finding.found}",
        f"  wanted:    {finding.wanted}",
        f"  endangers: {finding.endangers}",
        f"  repair:    {finding.repair}",
    )
    for line in lines:
        console.print(escaped(line), markup=False, soft_wrap=True)
    console.print()


def _warnings(count: int) -> str:
    return "1 warning" if count == 1 else f"{count} warnings"
