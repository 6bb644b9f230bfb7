"""What a database address must be, so that no later message of libpq's can hold a part of its password."""

from typing import Final

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

URI_SCHEMES: Final = ("postgresql://", "postgres://")
MAX_PORT: Final = 65_535

WANTED: Final = (
    "must be a libpq URI (postgresql://user@host:port/database) or keyword string (host=... dbname=...); in a URI"
    " write @ : / ? # % of a password as %40 %3A %2F %3F %23 %25, or give it apart as TALLYHOOK_DATABASE_PASSWORD"
)


def readable(address: str) -> bool:
    """Whether libpq reads the address the way it was meant.

    Where a password holds an unescaped `@` or `/`, libpq takes parts of it for the host, the port or the database, and
    shows those when it cannot connect. A host or a database that has an `@` of its own goes into a keyword string.
    """
    if "\0" in address:
        return False  # libpq would stop reading there.
    try:
        parts = conninfo_to_dict(address)
    except (ProgrammingError, UnicodeError):
        return False
    if address.startswith(URI_SCHEMES) and any("@" in str(parts.get(name, "")) for name in ("host", "dbname")):
        return False
    return all(_is_port(port) for port in str(parts.get("port", "")).split(","))


def _is_port(text: str) -> bool:
    """An empty one is the default's; several hosts have several, with commas."""
    return text == "" or (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= MAX_PORT)
