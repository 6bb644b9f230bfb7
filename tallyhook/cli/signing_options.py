"""The options by which `sign` and `send` take a key."""

import re
from pathlib import Path
from typing import Annotated

import typer

from tallyhook.cli.escaping import escaped
from tallyhook.errors import UsageError
from tallyhook.gateway.signing import SECRET_PREFIX, SigningKey

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{40,44}={0,2}|[A-Za-z0-9+/_-]{82,88}={0,2}")
"""As long as 32 or 64 bytes are, less the slashes that a path loses: a key without its prefix."""

FileArgument = Annotated[Path, typer.Argument(help="The event: a file, or - for standard input.")]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key", envvar="TALLYHOOK_SIGNING_KEY", show_envvar=True, help="Secret key, whsk_...; better in the variable."
    ),
]
KeyFileOption = Annotated[Path | None, typer.Option("--key-file", help="File of the secret key.")]
IdOption = Annotated[str | None, typer.Option("--id", help="webhook-id; by default the event's id.")]
TimestampOption = Annotated[
    int | None,
    typer.Option("--timestamp", min=0, max=999_999_999_999, help="webhook-timestamp, seconds since 1970; default now."),
]


def signing_key(key: str | None, key_file: Path | None) -> SigningKey:
    """The key that was given; a file wins over the variable. Raises UsageError."""
    if key_file is not None:
        try:
            text = key_file.read_text(encoding="utf-8")
        except (OSError, ValueError) as failure:
            raise UsageError(_unreadable(key_file, failure)) from None
        return SigningKey.from_text(text)
    if key is not None:
        return SigningKey.from_text(key)
    raise UsageError("no key: give --key-file FILE or set TALLYHOOK_SIGNING_KEY (`tallyhook keys generate`)")


def _unreadable(key_file: Path, failure: OSError | ValueError) -> str:
    """What is wrong with the file; a key that was given in place of its path is not repeated."""
    given = str(key_file)
    if SECRET_PREFIX in given or (_BASE64.fullmatch(given) and not ("/" in given and key_file.parent.is_dir())):
        return "--key-file takes the path of a file, and this looks like a key: set TALLYHOOK_SIGNING_KEY to it instead"
    reason = failure.strerror if isinstance(failure, OSError) else "it is no text in UTF-8"
    return f"--key-file {escaped(given)} cannot be read: {reason}"
