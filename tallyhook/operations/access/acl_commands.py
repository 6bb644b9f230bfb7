"""The table of ACLs as commands for Kafka's own tool."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby

from tallyhook.operations.access.acl import PROCESSES, Right


def commands(rights: Sequence[Right]) -> Iterator[str]:
    """One `kafka-acls` command a process and resource, a comment before those of each process.

    They take the cluster from the shell's variables BOOTSTRAP and ADMIN, the file with an administrator's settings.
    """
    for process, of_process in groupby(rights, key=lambda right: right.process):
        yield f"# {process}: {PROCESSES[process]}"
        for (principal, resource, name, pattern), rows in groupby(
            of_process, key=lambda right: (right.principal, right.resource, right.name, right.pattern)
        ):
            operations = " ".join(f"--operation {row.operation}" for row in rows)
            yield (
                'kafka-acls --bootstrap-server "$BOOTSTRAP" --command-config "$ADMIN" --add'
                f" --allow-principal {shlex.quote(principal)} {operations}"
                f" {_resource(resource, name)} --resource-pattern-type {pattern}"
            )


def _resource(resource: str, name: str) -> str:
    return "--cluster" if resource == "cluster" else f"--{resource} {shlex.quote(name)}"
