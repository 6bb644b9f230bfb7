"""A set of offsets or numbers at one bit each: a week of events at 500 a second is 38 MB, however they are spread."""

from collections.abc import Iterator

PAGE_NUMBERS = 65_536
_PAGE_BYTES = PAGE_NUMBERS // 8


class OffsetBits:
    """Whole numbers of 0 or more; memory grows with the pages of 65,536 numbers that are touched (8 KB each)."""

    def __init__(self) -> None:
        self._pages: dict[int, bytearray] = {}

    def add(self, number: int) -> bool:
        """Adds a number; false when it was there already."""
        page, bit = divmod(number, PAGE_NUMBERS)
        bits = self._pages.get(page)
        if bits is None:
            bits = self._pages[page] = bytearray(_PAGE_BYTES)
        mask = 1 << (bit & 7)
        if bits[bit >> 3] & mask:
            return False
        bits[bit >> 3] |= mask
        return True

    def __contains__(self, number: int) -> bool:
        page, bit = divmod(number, PAGE_NUMBERS)
        bits = self._pages.get(page)
        return bits is not None and bool(bits[bit >> 3] & (1 << (bit & 7)))

    def missing(self, start: int, end: int) -> Iterator[int]:
        """The numbers from `start` up to but not including `end` that are not in the set, in order."""
        number = start
        while number < end:
            page, bit = divmod(number, PAGE_NUMBERS)
            bits = self._pages.get(page)
            # A byte of eight numbers that are all there is passed in one step.
            if bits is not None and bit & 7 == 0 and bits[bit >> 3] == 0xFF:
                number += 8
                continue
            if number not in self:
                yield number
            number += 1
