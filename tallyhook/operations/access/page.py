"""The tables of `docs/access.md`, made from those in the code: python -m tallyhook.operations.access.page FILE."""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tallyhook.operations.access.acl import PROCESSES, default_principals, rights
from tallyhook.operations.access.grants import ROLES, TABLES, role_names
from tallyhook.settings import Installation

ACLS, GRANTS = "acls", "grants"


def acl_table() -> Iterator[str]:
    """A row a process and resource, with the defaults of the installation's settings."""
    found = rights(Installation.model_construct(), default_principals())
    yield "| principal | resource | operations | needed to |"
    yield "|---|---|---|---|"
    for (process, resource, name, pattern, purpose, display), rows in groupby(
        found, key=lambda row: (row.process, row.resource, row.name, row.pattern, row.purpose, row.display)
    ):
        shown = f"`{name}*`" if pattern == "prefixed" else f"`{name}`"
        operations = ", ".join(row.operation for row in rows)
        optional = " (optional)" if display else ""
        yield f"| `{default_principals()[process]}` | {resource} {shown} | {operations} | {purpose}{optional} |"


def grant_table() -> Iterator[str]:
    """A row a role and table."""
    names = role_names("tallyhook")
    yield "| role | table | privileges |"
    yield "|---|---|---|"
    for role, tables in TABLES.items():
        for table, privileges in tables.items():
            yield f"| `{names[role]}` | `{table}` | {', '.join(privileges)} |"
    yield f"| `{names['console']}` | every table, those of later migrations too | SELECT |"


def people() -> Iterator[str]:
    """Who is meant by each process and role."""
    yield "| process of Kafka | what it is |"
    yield "|---|---|"
    yield from (f"| {process} | {what} |" for process, what in PROCESSES.items())
    yield ""
    yield "| role of PostgreSQL | what it is |"
    yield "|---|---|"
    yield from (f"| {role} | {what} |" for role, what in ROLES.items())


def filled(text: str) -> str:
    """The page with each part between `<!-- name -->` and `<!-- end -->` made anew."""
    for name, lines in (("people", people()), (ACLS, acl_table()), (GRANTS, grant_table())):
        head, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        text = head + begin + "\n" + "\n".join(lines) + "\n\n" + end + tail
    return text


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
