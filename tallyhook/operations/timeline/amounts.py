"""Amounts in words: satang as baht with separators."""


def exact(minor: int) -> str:
    """Baht with two decimals, as the lines of a timeline show them: 100000 -> 1,000.00."""
    whole, rest = divmod(abs(minor), 100)
    return f"{'-' if minor < 0 else ''}{whole:,}.{rest:02d}"


def short(minor: int) -> str:
    """The same without `.00`, as status texts show it: 100000 -> 1,000, 30050 -> 300.50."""
    return exact(minor).removesuffix(".00")
