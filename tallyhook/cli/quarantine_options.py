"""The options by which `quarantine list` and `redrive` choose rows."""

import re
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated

import typer

from schemas.reasons import REASONS
from tallyhook.errors import UsageError

_AGE = re.compile(r"^(\d{1,6})([mhd])$")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


class Stage(StrEnum):
    """Who set an event aside."""

    INGRESS = "ingress"
    STREAMS = "streams"
    SINKS = "sinks"


ReasonOption = Annotated[str | None, typer.Option("--reason", help="Only rows with this reason code.")]
StageOption = Annotated[Stage | None, typer.Option("--stage", help="Only rows that this stage set aside.")]
TypeOption = Annotated[str | None, typer.Option("--type", help="Only events of this type, as deposit.settled.")]
SinceOption = Annotated[
    str | None,
    typer.Option("--since", help="Set aside from then on: 2026-03-01, 2026-03-01T10:00Z, or an age as 90m, 12h, 3d."),
]
UntilOption = Annotated[str | None, typer.Option("--until", help="Set aside before then; written like --since.")]


def known_reason(reason: str | None) -> str | None:
    """The reason code; raises UsageError with those that there are."""
    if reason is not None and reason not in REASONS:
        raise UsageError(f"--reason {reason}: there is no such code; it is one of {', '.join(REASONS)}")
    return reason


def moment(option: str, text: str | None, now: datetime) -> datetime | None:
    """A date, a date-time (UTC where it has no zone) or an age; raises UsageError."""
    if text is None:
        return None
    age = _AGE.match(text)
    try:
        if age is not None:
            return now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} {text}: must be a date, a date-time, or an age as 90m, 12h, 3d") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
