"""Texts beside each other: widths are those of a terminal's cells, which Thai vowels above and below do not take."""

from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size

GUTTER = "   "


def beside(left: Sequence[str], right: Sequence[str], width_max: int | None = None) -> list[str]:
    """The lines of two texts in two columns; one below the other where both are wider than `width_max` cells."""
    left_cells, right_cells = _widest(left), _widest(right)
    if width_max is not None and left_cells + len(GUTTER) + right_cells > width_max:
        return [*left, "", *right]
    pairs = zip_longest(left, right, fillvalue="")
    return [f"{set_cell_size(one, left_cells)}{GUTTER}{other}".rstrip() for one, other in pairs]


def _widest(lines: Sequence[str]) -> int:
    return max(map(cell_len, lines), default=0)
