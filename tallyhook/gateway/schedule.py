"""When the gateway tries again: up to 12 attempts over about 92 hours, as offsets from the first attempt.

Source: the gateway says that a delivery is tried up to 12 times over about 92 hours, the third time 1 min 10 s and the
fourth time 6 min 10 s after the first. The other offsets are not stated: those of the default are assumed.
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tallyhook.errors import UsageError
from tallyhook.settings.gateway_sim import DEFAULT_RETRY_SECONDS

MAX_ATTEMPTS: Final = 100
MAX_OFFSET_SECONDS: Final = 31 * 86_400

STATED_SECONDS: Final = {3: 70, 4: 370}
"""Offsets that the gateway states, by the number of the attempt."""

_TEXT = re.compile(r"[0-9]{1,7}(,[0-9]{1,7})*")


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """One offset an attempt; the first is zero, and they rise.

    Args:
        offsets: distance of each attempt from the first one, in virtual time.

    Raises:
        UsageError: no offsets, too many, or they do not rise from zero.
    """

    offsets: tuple[timedelta, ...]

    def __post_init__(self) -> None:
        rising = all(left < right for left, right in zip(self.offsets, self.offsets[1:], strict=False))
        within = len(self.offsets) <= MAX_ATTEMPTS and self.offsets[-1:] <= (timedelta(seconds=MAX_OFFSET_SECONDS),)
        if not (self.offsets and self.offsets[0] == timedelta(0) and rising and within):
            raise UsageError(
                f"a retry schedule is 1 to {MAX_ATTEMPTS} rising numbers of seconds, the first 0, "
                f"the last at most {MAX_OFFSET_SECONDS}: {DEFAULT_RETRY_SECONDS}"
            )

    @classmethod
    def from_text(cls, text: str) -> "RetrySchedule":
        """Reads seconds with commas between them; raises UsageError."""
        if _TEXT.fullmatch(text) is None:
            raise UsageError(
                f"retry schedule {text[:80]!a}: must be seconds with commas, such as {DEFAULT_RETRY_SECONDS}"
            )
        return cls(tuple(timedelta(seconds=int(part)) for part in text.split(",")))

    @property
    def attempts(self) -> int:
        """Most attempts of one delivery."""
        return len(self.offsets)

    def offset(self, made: int) -> timedelta | None:
        """Distance of the next attempt from the first one, when `made` were made; None: there is no next one."""
        return self.offsets[made] if made < len(self.offsets) else None
