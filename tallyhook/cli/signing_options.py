"""The options by which `sign` and `send` take a key."""

from pathlib import Path
from typing import Annotated

import typer

from tallyhook.errors import UsageError
from tallyhook.gateway.signing import SigningKey

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
            return SigningKey.from_text(key_file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as failure:
            raise UsageError(f"--key-file {key_file} cannot be read: {failure}") from failure
    if key is not None:
        return SigningKey.from_text(key)
    raise UsageError("no key: give --key-file FILE or set TALLYHOOK_SIGNING_KEY (`tallyhook keys generate`)")
