"""What was sent, what was answered, and what must therefore lie in the topics."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field

from tests.hostile.wire_client import Answer

STATUSES = frozenset({200, 400, 401, 404, 405, 413, 415, 503})
"""Those of the door's table; no other may ever come."""


def digest(body: bytes) -> bytes:
    """What tells bodies apart."""
    return hashlib.sha256(body).digest()


@dataclass
class Ledger:
    """Books of one flood.

    Args:
        answered: how often each body was answered 200, by digest.
        open: how often each authentic body was sent without an answer that settles it.
        statuses: by kind of attack.
        requests: all that were begun.
    """

    answered: Counter[bytes] = field(default_factory=Counter)
    open: Counter[bytes] = field(default_factory=Counter)
    statuses: dict[str, Counter[str]] = field(default_factory=dict)
    requests: int = 0
    faults: list[str] = field(default_factory=list)

    def note(self, kind: str, answer: Answer | None) -> int:
        """Counts an answer of this kind of attack and gives its status, 0 where none came."""
        status = answer.status if answer is not None else 0
        self.statuses.setdefault(kind, Counter())[str(status) if status else "none"] += 1
        if answer is None:
            return 0
        if status not in STATUSES:
            self.faults.append(f"{kind}: {status} is no answer of the door")
        if status not in (200, 405) and b"application/problem+json" not in answer.head:
            self.faults.append(f"{kind}: {status} without problem+json")
        if status == 503 and b"\r\nretry-after: " not in answer.head:
            self.faults.append(f"{kind}: 503 without Retry-After")
        return status

    def authentic(self, kind: str, body: bytes, answer: Answer | None) -> None:
        """An authentic request: 200 settles it as stored; no answer and 503 leave it open."""
        status = self.note(kind, answer)
        if status == 200:
            self.answered[digest(body)] += 1
        elif status in (0, 503):
            self.open[digest(body)] += 1
        else:
            self.faults.append(f"{kind}: an authentic request was answered {status}")

    def expect(self, kind: str, answer: Answer | None, *statuses: int) -> None:
        """A request that must be refused, by one of these statuses or, under load, by 503."""
        status = self.note(kind, answer)
        if status not in (*statuses, 503):
            self.faults.append(f"{kind}: {status or 'no answer'} in the place of {statuses}")

    def check(self, stored: Counter[bytes]) -> None:
        """Everything that was answered 200 is stored as often, and nothing else but what is open."""
        for key in stored.keys() | self.answered.keys():
            least, most = self.answered[key], self.answered[key] + self.open[key]
            if not least <= stored[key] <= most:
                self.faults.append(f"{key.hex()[:12]}: stored {stored[key]} times, to be {least} to {most}")

    def table(self) -> str:
        """A line a kind."""
        rows = (
            f"{kind:24} {', '.join(f'{status} x {count}' for status, count in sorted(found.items()))}"
            for kind, found in sorted(self.statuses.items())
        )
        return "\n".join(rows)
