"""The two phases of an upgrade: what the running program bears, and what needs it gone. Pure.

A `pre` revision only adds: it runs while programs of the release before work. A `post` revision takes away or tightens:
it runs once none of them is left. Within a release all `pre` revisions come first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tallyhook.errors import SchemaMismatch

Phase = Literal["pre", "post", "all"]


@dataclass(frozen=True, slots=True)
class Revision:
    """One step of the schema.

    Args:
        number: four digits; they rise along the chain.
        phase: `pre` or `post`.
        compatible_from: the oldest program, named by its revision, that works with the schema after this step.
    """

    number: str
    phase: str
    compatible_from: str


def target(chain: Sequence[Revision], current: str | None, phase: Phase) -> str | None:
    """The revision that a phase ends at; None where it has nothing to do.

    Args:
        chain: every revision in order.
        current: where the schema stands; None where it was never made, so that no program runs that could mind.

    Raises:
        SchemaMismatch: the phases of two releases are mixed; what to run first is said.
    """
    pending = [step for step in chain if current is None or step.number > current]
    if not pending:
        return None
    if phase == "all" or current is None:
        return pending[-1].number
    first = pending[0]
    if phase == "post":
        if first.phase == "pre":
            raise SchemaMismatch(
                f"revision {first.number} of the phase pre was not run yet: run `tallyhook migrate --phase pre`,"
                " replace every program of the older release, then run the phase post. Nothing was changed"
            )
        # What comes after a further pre belongs to a later release, whose programs are not there yet.
        return _before(pending, "pre")
    if first.phase == "pre":
        end = _before(pending, "post")
        if any(step.phase == "pre" for step in pending if step.number > end):
            raise SchemaMismatch(_skipped(pending, "upgrade to the release in between first"))
        return end
    if any(step.phase == "pre" for step in pending):
        raise SchemaMismatch(
            _skipped(pending, "run `tallyhook migrate --phase post` of the release that runs now first")
        )
    return None


def _before(pending: Sequence[Revision], phase: str) -> str:
    """The last of the revisions that come before the first of a phase."""
    for place, step in enumerate(pending):
        if step.phase == phase:
            return pending[place - 1].number
    return pending[-1].number


def _skipped(pending: Sequence[Revision], way: str) -> str:
    post = next(step for step in pending if step.phase == "post")
    return (
        f"revision {post.number} needs the programs of an older release gone, and later ones must run before the new"
        f" programs start: {way}, or stop every sink, relay and console and run `tallyhook migrate`. Nothing was"
        " changed"
    )


def needed(chain: Sequence[Revision]) -> str:
    """The oldest revision that the program of this chain works with: its last `pre`."""
    return next(step.number for step in reversed(chain) if step.phase == "pre")


def judge(found: str | None, needs: str, head: str, compatible_from: str | None) -> str | None:
    """Why a program cannot work with a schema; None when it can.

    Args:
        found: where the schema stands; None where it was never made.
        needs: the oldest revision that the program works with.
        head: the newest revision that it knows.
        compatible_from: what the schema says of a revision that the program does not know.
    """
    if found is not None and needs <= found <= head:
        return None
    if found is None or found < needs:
        return f"stands at revision {found or 'none'}, this program needs {needs}: run `tallyhook migrate`" + (
            " (with --phase pre while programs of the older release still work)" if found else ""
        )
    if compatible_from is not None and compatible_from <= head:
        return None
    return (
        f"stands at revision {found}, which needs programs of revision {compatible_from or found} or newer; this one"
        f" knows {head}: deploy the newer program"
    )
