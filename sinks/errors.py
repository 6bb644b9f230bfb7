"""What can go wrong inside of a batch that is no event's fault."""

from tallyhook.errors import TallyhookError


class CountDiffers(TallyhookError):
    """A guarded statement changed another number of rows than decided: somebody else wrote meanwhile."""

    def __init__(self, statement: str, expected: int, found: int) -> None:
        super().__init__(
            f"{statement} changed {found} rows instead of {expected}: rolled back; if this goes on, look for a writer"
            " beside the sink"
        )
        self.statement = statement


class LedgerBroken(TallyhookError):
    """The ledger contradicts itself; going on would move money on a guess."""


class NumbersTaken(TallyhookError):
    """A number of the outbox or the inbox is used already: sink_offsets was set back."""


class TooManyQuarantined(TallyhookError):
    """More events were set aside than is normal: most likely something else is wrong than the events."""
