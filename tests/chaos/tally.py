"""What a whole run of the chaos did: kept while its tests run, shown when they are over."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import get_args

from tallyhook.failpoints import Failpoint


@dataclass
class Tally:
    """Sums over every chaos test of this process.

    Args:
        at_failpoints: deaths by failpoint.
        at_random: kills at any moment, by unit.
        disturbances: what hurt without a death, such as cut connections, by kind.
        deliveries: posts that were answered with 200.
        seeds: of each test, by its name.
        clean_audits: how many tests ended with an audit without a counterexample.
    """

    at_failpoints: Counter[str] = field(default_factory=Counter)
    at_random: Counter[str] = field(default_factory=Counter)
    disturbances: Counter[str] = field(default_factory=Counter)
    deliveries: int = 0
    seeds: dict[str, int] = field(default_factory=dict)
    clean_audits: int = 0

    @property
    def kills(self) -> int:
        """Every kill -9."""
        return self.at_failpoints.total() + self.at_random.total()

    def lines(self) -> Iterator[str]:
        """The table."""
        yield f"{self.kills} kills: {self.at_failpoints.total()} at failpoints, {self.at_random.total()} at random"
        for name in get_args(Failpoint):
            yield f"  {name:32} {self.at_failpoints[name]:5}"
        for unit, number in sorted(self.at_random.items()):
            yield f"  {unit + ' at random':32} {number:5}"
        for kind, number in sorted(self.disturbances.items()):
            yield f"  {kind:32} {number:5}"
        yield f"{self.deliveries:,} deliveries answered with 200, {self.clean_audits} clean audits"
        for test, seed in self.seeds.items():
            yield f"  seed {seed:6}  {test}"


TALLY = Tally()
