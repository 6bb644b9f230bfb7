"""The statements of the timeline stay quick on large tables: each finds its rows by an index."""

import json

import pytest

from tallyhook.postgres import Queries
from tests.integration.operations.operated import Operated

WANTED = {
    "object_id": "wdr_1",
    "version": 1,
    "key": "ord_1",
    "limit": 10,
    "keys": ["evt_1:show_progress"],
    "event_ids": ["evt_1"],
    "entry_keys": ["deposit:dep_1:credit"],
}


@pytest.mark.parametrize("file", ["timeline.sql", "support.sql"])
def test_no_statement_reads_a_whole_table(quiet: Operated, file: str) -> None:
    """Where the planner may not read a table from end to end, it has no need to."""

    def plan_of(statement: bytes) -> str:
        (plan,) = quiet.connection.execute(b"EXPLAIN (FORMAT JSON) " + statement, WANTED).fetchone() or ({},)
        return json.dumps(plan)

    queries = Queries("tallyhook.operations.timeline", file, quiet.settings.installation.schema_name)
    quiet.connection.execute("SET enable_seqscan = off")
    for name in sorted(queries.names):
        assert "Seq Scan" not in plan_of(queries[name].as_bytes(quiet.connection)), name
    assert "Seq Scan" in plan_of(b"SELECT FROM pg_outbox WHERE causation_id = %(object_id)s")
