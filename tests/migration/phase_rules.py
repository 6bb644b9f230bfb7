"""What a revision of the phase `pre` may not do, because a program of the release before works meanwhile."""

import re
from collections.abc import Iterator

_COMMENT = re.compile(r"--[^\n]*")
_FUNCTION_BODY = re.compile(r"\$(\w*)\$.*?\$\1\$", re.DOTALL)
_TEXT = re.compile(r"'(?:[^']|'')*'")
_CREATED = re.compile(r"\bCREATE TABLE (?:IF NOT EXISTS )?(\S+)", re.IGNORECASE)
_TAKES_AWAY = re.compile(r"\b(DROP|RENAME|TRUNCATE|DELETE FROM|UPDATE)\b", re.IGNORECASE)
_CHANGES_TYPE = re.compile(r"\bALTER (?:COLUMN )?\w+ (?:SET DATA )?TYPE\b", re.IGNORECASE)
_TIGHTENS = re.compile(r"\bSET NOT NULL\b|\bDROP DEFAULT\b", re.IGNORECASE)
_COLUMN = re.compile(r"\bADD COLUMN (?:IF NOT EXISTS )?(\w+)([^,;]*)", re.IGNORECASE)
_CONSTRAINT = re.compile(r"\bADD (?:CONSTRAINT|CHECK|UNIQUE|PRIMARY KEY|FOREIGN KEY)\b", re.IGNORECASE)
_INDEX = re.compile(r"\bCREATE (UNIQUE )?INDEX (CONCURRENTLY )?(IF NOT EXISTS )?\S+ ON (?:ONLY )?(\S+)", re.IGNORECASE)
_TRIGGER = re.compile(r"\bCREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER \S+ .*? ON (\S+)", re.IGNORECASE | re.DOTALL)


def breaches(text: str) -> list[str]:
    """Each statement of a `pre` revision that an older program may not bear, with the reason."""
    made = {name.rstrip("(") for name in _CREATED.findall(_bare(text))}
    told = ((" ".join(statement.split())[:100], _why(statement, made)) for statement in _statements(text))
    return [f"{why}: {statement}" for statement, reasons in told for why in reasons]


def _bare(text: str) -> str:
    return _TEXT.sub("''", _FUNCTION_BODY.sub("''", _COMMENT.sub("", text)))


def _statements(text: str) -> list[str]:
    return [statement for statement in _bare(text).split(";") if statement.strip()]


def _why(statement: str, made: set[str]) -> Iterator[str]:
    words = statement.split()
    # A foreign key's ON DELETE and a trigger's BEFORE UPDATE take nothing away by themselves.
    acting = "" if words[:2] == ["CREATE", "TRIGGER"] else re.sub(r"(?i)\bON (DELETE|UPDATE)\b", "", statement)
    if found := _TAKES_AWAY.search(acting):
        yield f"{found[1].upper()} takes away what an older program may use"
    if _CHANGES_TYPE.search(statement):
        yield "another type is another thing to an older program, and rewrites the table"
    if _TIGHTENS.search(statement):
        yield "an older program may write what is refused from then on"
    for name, rest in _COLUMN.findall(statement):
        if re.search(r"\bNOT NULL\b", rest, re.IGNORECASE) and not re.search(r"\bDEFAULT\b", rest, re.IGNORECASE):
            yield f"column {name} is NOT NULL without a default, and an older program does not fill it"
    if words[0].upper() == "ALTER" and _CONSTRAINT.search(statement):
        yield "a constraint on an older table refuses what an older program may write"
    if (index := _INDEX.search(statement)) and index[4].split("(")[0] not in made:
        if index[1]:
            yield "a unique index on an older table refuses what an older program may write"
        if not index[3]:
            yield "an index of an older table needs IF NOT EXISTS, so that a DBA can make it CONCURRENTLY before"
    if (trigger := _TRIGGER.search(statement)) and trigger[1] not in made:
        yield "a trigger on an older table changes what an older program does"
