"""Two texts beside each other, in Thai and English."""

import unicodedata

from tallyhook.cli.columns import beside

THAI = ["ถอนสำเร็จ 1,000 บาท", "├ 10:53  +400.00 บาท  ก้อนที่ 2 (ถูกกลับรายการแล้ว)", "คำขอถอน", ""]
ENGLISH = ["one", "two", "three", "four", "five"]


def cells(text: str) -> int:
    """Widths by Unicode alone: what is written above or below takes no cell."""
    return sum(unicodedata.category(character) not in ("Mn", "Me", "Cf") for character in text)


def test_the_right_column_begins_in_the_same_cell_of_every_line() -> None:
    """Vowels and tones above and below a Thai consonant take no room of their own."""
    lines = beside(THAI, ENGLISH)
    starts = {cells(line.split(word)[0]) for line, word in zip(lines, ENGLISH, strict=True)}
    assert starts == {max(map(cells, THAI)) + 3}
    assert lines[0].startswith(THAI[0])


def test_a_shorter_right_column_leaves_no_blanks_behind() -> None:
    """Lines end where their text ends."""
    assert beside(["กก", "ก"], ["x"]) == ["กก   x", "ก"]
    assert beside([], ["x"]) == ["   x"]
    assert beside([], []) == []


def test_columns_that_do_not_fit_stand_one_below_the_other() -> None:
    """A terminal would break both of them."""
    assert beside(["ก้ก้ก้"], ["abc"], width_max=9) == ["ก้ก้ก้   abc"]
    assert beside(["ก้ก้ก้"], ["abc"], width_max=8) == ["ก้ก้ก้", "", "abc"]
