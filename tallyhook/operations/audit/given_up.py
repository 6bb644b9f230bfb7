"""Records that were gone before they were applied and that somebody gave up: named, for they are no secret loss."""

from tallyhook.operations.audit.findings import EXAMPLES_MAX, Check
from tallyhook.operations.audit.snapshot import Snapshot

TEXT_CHARS_MAX = 200


def name_losses(snapshot: Snapshot, check: Check) -> None:
    """Names the newest losses that were accepted, each with who gave it up and why, and counts the older ones."""
    for number, (topic, partition, start, end, actor, reason) in enumerate(snapshot.rows("accepted_losses")):
        if number < EXAMPLES_MAX:
            place = f"{topic}[{partition}], {start} to {end - 1}"
            what = f"records ({place}) that were gone and that {_shown(actor)} gave up: {_shown(reason)}"
        else:
            what = "records that were gone and that were given up before those"
        check.leave_out(what, end - start)


def _shown(text: str) -> str:
    """What a person wrote, safe for a terminal and not too long."""
    return "".join(character if character.isprintable() else "?" for character in text[:TEXT_CHARS_MAX])
