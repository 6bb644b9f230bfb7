"""The two phases of an upgrade: which revisions run when, which program bears which schema, and what a `pre` may do."""

import re
from pathlib import Path

import pytest

from sinks import migrations
from sinks.migrations.phases import Phase, Revision, judge, needed, target
from tallyhook.errors import SchemaMismatch
from tests.migration.phase_rules import breaches

NEXT = Path(__file__).parent / "next_release" / "versions"
FILES = sorted((*migrations.FOLDERS[0].glob("0*.sql"), *NEXT.glob("0*.sql")))
UNRELEASED = 2
"""Revisions up to this one were never run under a program of an earlier release."""

CHAIN = [
    Revision("0001", "pre", "0001"),
    Revision("0002", "pre", "0001"),
    Revision("0003", "post", "0002"),
    Revision("0004", "pre", "0002"),
    Revision("0005", "post", "0004"),
]


@pytest.mark.parametrize(
    ("length", "current", "phase", "end"),
    [
        (5, None, "pre", "0005"),
        (5, None, "post", "0005"),
        (5, None, "all", "0005"),
        (5, "0001", "all", "0005"),
        (3, "0001", "pre", "0002"),
        (3, "0002", "pre", None),
        (3, "0002", "post", "0003"),
        (3, "0003", "post", None),
        (5, "0003", "pre", "0004"),
        (5, "0004", "post", "0005"),
        (5, "0002", "post", "0003"),
        (5, "0005", "all", None),
        (2, "0005", "all", None),
    ],
)
def test_where_a_phase_ends(length: int, current: str | None, phase: Phase, end: str | None) -> None:
    """`pre` stops before the first `post`; a schema that was never made is made whole; a newer one is left alone."""
    assert target(CHAIN[:length], current, phase) == end


@pytest.mark.parametrize(
    ("current", "phase", "told"),
    [
        ("0001", "post", "run `tallyhook migrate --phase pre`"),
        ("0003", "post", "revision 0004 of the phase pre was not run yet"),
        ("0001", "pre", "upgrade to the release in between first"),
        ("0002", "pre", "run `tallyhook migrate --phase post` of the release that runs now first"),
    ],
)
def test_phases_that_cannot_run_now(current: str, phase: Phase, told: str) -> None:
    """Two releases at once, or the second phase before the first: refused, with what to run first."""
    with pytest.raises(SchemaMismatch, match=re.escape(told)):
        target(CHAIN, current, phase)


def test_which_program_bears_which_schema() -> None:
    """From the last `pre` to the head, and what is newer only where it says so."""
    assert needed(CHAIN) == "0004"
    assert needed(CHAIN[:3]) == "0002"
    assert judge("0002", "0002", "0003", None) is None
    assert judge("0003", "0002", "0003", None) is None
    assert judge("0004", "0002", "0003", "0002") is None
    assert judge("0004", "0002", "0003", "0003") is None
    for found, says, told in (
        (None, None, "stands at revision none, this program needs 0002: run `tallyhook migrate`"),
        ("0001", None, "stands at revision 0001, this program needs 0002: run `tallyhook migrate`"),
        ("0005", "0004", "needs programs of revision 0004 or newer; this one knows 0003: deploy the newer program"),
        ("0009", None, "needs programs of revision 0009 or newer"),
    ):
        assert told in (judge(found, "0002", "0003", says) or "")


def test_the_program_knows_its_own_files() -> None:
    """HEAD is the newest file, NEEDED the last `pre`; numbers have four digits and rise by one; what bears an older
    program never goes back."""
    chain = migrations.chain()
    assert chain[-1].number == migrations.HEAD
    assert needed(chain) == migrations.NEEDED
    assert [step.number for step in chain] == [f"{number:04d}" for number in range(1, len(chain) + 1)]
    borne = [step.compatible_from for step in chain]
    assert borne == sorted(borne)
    assert all(step.compatible_from <= step.number for step in chain)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_revision_says_what_it_is(path: Path) -> None:
    """The file's name and the row that it writes say the phase; one that adds only bears the program before it."""
    number, _, name = path.stem.partition("_")
    if int(number) <= UNRELEASED:
        return
    phase = name.split("_")[0]
    module = path.with_suffix(".py").read_text(encoding="utf-8")
    assert f'revision = "{number}"' in module
    assert f'phase = "{phase}"' in module
    (borne,) = re.findall(r'^compatible_from = "(\d{4})"$', module, re.MULTILINE)
    assert f"VALUES ('{number}', '{phase}', '{borne}');" in path.read_text(encoding="utf-8")
    assert phase in ("pre", "post")
    assert (borne < number) is True


@pytest.mark.parametrize("path", [path for path in FILES if "_post_" not in path.name], ids=lambda path: path.stem)
def test_a_pre_revision_only_adds(path: Path) -> None:
    """Nothing that a program of the release before may stumble over."""
    found = breaches(path.read_text(encoding="utf-8"))
    if int(path.stem[:4]) <= UNRELEASED:
        found = [breach for breach in found if "IF NOT EXISTS" not in breach]
    assert found == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE s.t DROP COLUMN a",
        "DROP INDEX s.i",
        "ALTER TABLE s.t RENAME COLUMN a TO b",
        "ALTER TABLE s.t RENAME TO u",
        "ALTER TABLE s.t ALTER COLUMN a TYPE bigint",
        "ALTER TABLE s.t ALTER a SET DATA TYPE bigint",
        "ALTER TABLE s.t ALTER COLUMN a SET NOT NULL",
        "ALTER TABLE s.t ADD COLUMN a text NOT NULL",
        "ALTER TABLE s.t ADD COLUMN b text, ADD COLUMN a text NOT NULL",
        "ALTER TABLE s.t ADD CONSTRAINT c CHECK (a > 0)",
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON s.t (a)",
        "CREATE INDEX i ON s.t (a)",
        "CREATE TRIGGER g BEFORE INSERT ON s.t FOR EACH ROW EXECUTE FUNCTION s.f()",
        "UPDATE s.t SET a = 1",
        "DELETE FROM s.t",
        "TRUNCATE s.t",
    ],
)
def test_what_a_pre_revision_may_not_do(statement: str) -> None:
    """Each is found, also behind harmless ones and comments."""
    harmless = "-- DROP nothing;\nCREATE TABLE s.new (a text NOT NULL);\nCREATE INDEX j ON s.new (a);\n"
    assert len(breaches(f"{harmless}{statement};")) == 1


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE s.t ADD COLUMN a text",
        "ALTER TABLE s.t ADD COLUMN a text NOT NULL DEFAULT 'DROP'",
        "CREATE TABLE s.u (a text PRIMARY KEY REFERENCES s.t (a) ON DELETE CASCADE)",
        "CREATE INDEX IF NOT EXISTS i ON s.t (a)",
        "CREATE FUNCTION s.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DELETE FROM s.t; RETURN NULL; END $$",
        "INSERT INTO s.schema_revisions VALUES ('0009', 'pre', '0008')",
    ],
)
def test_what_a_pre_revision_may_do(statement: str) -> None:
    """Additions that an older program does not see."""
    assert breaches(f"{statement};") == []
