"""`tallyhook keys`: key pairs for signing test webhooks."""

import os
import sys
from pathlib import Path

import typer

from tallyhook.cli.output import JsonOption, print_json
from tallyhook.errors import TallyhookError, UsageError
from tallyhook.gateway.signing import SigningKey

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Make key pairs for signing test webhooks.\n\nExample: tallyhook keys generate --out keys/",
)

SECRET_FILE = "signing_key"  # noqa: S105  a file's name


@app.callback()
def keys() -> None:
    """With this, typer keeps `generate` a command of its own."""


@app.command("generate")
def generate(
    out: Path | None = typer.Option(
        None, help=f"File of the secret, or a folder in which it is called {SECRET_FILE}. Mode 0600."
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite the file."),
    as_json: JsonOption = False,
) -> None:
    """Make an Ed25519 key pair; prints the public key and its id.

    The secret goes to a file. Without --out it is printed, unless the output is a terminal.

    Example: tallyhook keys generate --out keys/

    Example: export TALLYHOOK_SIGNING_KEY=$(tallyhook keys generate --json | jq -r .signing_key)
    """
    key = SigningKey.generate()
    shown: dict[str, str] = {"key_id": key.key_id, "public_key": key.public_text()}
    if out is not None:
        shown["secret_file"] = str(write_secret(key, out, force=force))
    elif sys.stdout.isatty():
        raise UsageError("give --out FILE: a terminal keeps what it shows, and this would be the secret")
    else:
        shown["signing_key"] = key.secret_text()
    if as_json:
        print_json(shown)
        return
    for name, value in shown.items():
        print(f"{name.replace('_', ' ')}: {value}")


def write_secret(key: SigningKey, out: Path, *, force: bool) -> Path:
    """Writes the secret so that nobody else can read it at any moment; raises UsageError rather than overwrite."""
    target = out / SECRET_FILE if out.is_dir() or str(out).endswith(os.sep) else out
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if force:
            target.unlink(missing_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise UsageError(f"{target} exists: whoever signs with it would lose it; --force overwrites") from None
    except OSError as failure:
        raise TallyhookError(f"{target} cannot be written: {failure.strerror}") from failure
    with os.fdopen(descriptor, "w", encoding="utf-8") as secret:
        secret.write(key.secret_text() + "\n")
    return target
