"""`tallyhook settings`: every setting with meaning, unit, default, bounds and what it is now."""

import os
from dataclasses import asdict

import typer

from tallyhook.cli.output import JsonOption, errors, print_json, print_table
from tallyhook.settings import describe, load, unknown_variables


def settings(as_json: JsonOption = False) -> None:
    """Print every setting; exit code 2 when one is wrong. Secrets are never shown.

    Example: tallyhook settings

    Example: TALLYHOOK_SINK_BATCH_ROWS=0 tallyhook settings
    """
    rows = list(describe())
    now = {
        row.variable: ("..." if row.secret else os.environ[row.variable]) if row.variable in os.environ else None
        for row in rows
    }
    if as_json:
        print_json([asdict(row) | {"environment": now[row.variable]} for row in rows])
    else:
        print_table(
            "",
            ("variable", "now", "default", "allowed", "unit", "meaning"),
            [(r.variable, now[r.variable], r.default, r.bounds, r.unit, r.meaning) for r in rows],
        )
    for name in unknown_variables(os.environ):
        errors.print(f"tallyhook: {name} is no setting of this version: a typing error?", markup=False)
    load()
    if unknown_variables(os.environ):
        raise typer.Exit(2)
