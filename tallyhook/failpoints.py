"""Named places at the commit boundaries of every stage, where a test lets the process die.

Nothing is armed unless the environment of a test asks for it; then `reach` costs one look at a name. What arms and
kills stands in a module of its own, `failpoint_arming`, that the production image does not contain.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol

from tallyhook.errors import SettingsError

POINTS_VARIABLE: Final = "TALLYHOOK_FAILPOINTS"
ALLOWED_VARIABLE: Final = "TALLYHOOK_FAILPOINTS_ALLOWED"
ALLOWED: Final = "tests-only"

Failpoint = Literal[
    # An event at the door: nothing is sent yet, sent, confirmed but not answered, answered.
    "ingress.before_publish",
    "ingress.published",
    "ingress.confirmed",
    "ingress.answered",
    # A batch of the stream, in the order of its steps; the last two surround the commit of the group's offsets.
    "stream.judged",
    "stream.outputs_sent",
    "stream.outputs_confirmed",
    "stream.changelog_sent",
    "stream.changelog_confirmed",
    "stream.table_written",
    "stream.acked",
    "stream.before_commit",
    "stream.committed",
    # A partition's claim, then a batch of the sink: one transaction.
    "sink.claimed",
    "sink.taken",
    "sink.locked_and_loaded",
    "sink.decided",
    "sink.rows_written",
    "sink.copying",
    "sink.inbox_written",
    "sink.balances_written",
    "sink.outbox_written",
    "sink.offset_advanced",
    "sink.commit_sent",
    "sink.committed",
    # The sink's other transactions: dead letters, correlations from their topic, the gateway's sequence.
    "sink.letters_written",
    "sink.letters_committed",
    "sink.correlations_inserted",
    "sink.sequence_written",
    "sink.sequence_committed",
    # A relay's start, then one of its Kafka transactions, then the cursor that follows it in the database.
    "relay.lease_taken",
    "relay.fenced_others",
    "relay.progress_read",
    "relay.begun",
    "relay.produced",
    "relay.prepared",
    "relay.commit_sent",
    "relay.committed",
    "relay.cursor_noted",
]
"""Every failpoint by stage and place."""


class Armed(Protocol):
    """What happens at failpoints."""

    def reached(self, name: Failpoint, last: Callable[[], object] | None) -> None:
        """The process is at this place; it may die here, after it did `last`."""
        ...


_armed: Armed | None = None


def reach(name: Failpoint, last: Callable[[], object] | None = None) -> None:
    """Marks a place at which a test may let the process die.

    Args:
        last: done only by a process that dies here, just before, for instance to send what is never confirmed.
    """
    if _armed is not None:
        _armed.reached(name, last)


def arm(environ: Mapping[str, str]) -> None:
    """Arms what the environment names, once a process.

    TALLYHOOK_FAILPOINTS is `name:after_n[:signal]`, several with commas, or `@` and a folder; see `failpoint_arming`.

    Raises:
        SettingsError: TALLYHOOK_FAILPOINTS is set and TALLYHOOK_FAILPOINTS_ALLOWED is not tests-only, or this build
            has no failpoints, or the text names none.
    """
    text = environ.get(POINTS_VARIABLE)
    if not text:
        return
    if environ.get(ALLOWED_VARIABLE) != ALLOWED:
        raise SettingsError(
            f"{POINTS_VARIABLE} is set: failpoints kill the process and are for tests; unset it"
            f" ({ALLOWED_VARIABLE} says {environ.get(ALLOWED_VARIABLE, 'nothing')})"
        )
    try:
        import tallyhook.failpoint_arming as arming
    except ModuleNotFoundError:
        raise SettingsError(f"{POINTS_VARIABLE} is set and this build has no failpoints; unset it") from None
    global _armed  # noqa: PLW0603  one look at a module's name is all that a stage may pay for it
    _armed = arming.from_text(text)


def handed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """The two variables as a supervisor gives them to its stages; none in production."""
    return {name: environ[name] for name in (POINTS_VARIABLE, ALLOWED_VARIABLE) if name in environ}
