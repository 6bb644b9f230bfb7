"""`tallyhook sign`: the headers that make a file a webhook."""

import time

import typer

from tallyhook.cli.output import JsonOption, print_json
from tallyhook.cli.signing_options import (
    FileArgument,
    IdOption,
    KeyFileOption,
    KeyOption,
    TimestampOption,
    signing_key,
)
from tallyhook.errors import UsageError
from tallyhook.gateway import sources


def sign(
    file: FileArgument,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    message_id: IdOption = None,
    timestamp: TimestampOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign the bytes of FILE as they are; prints the three headers, one a line, as curl takes them.

    Example: tallyhook sign event.json --key-file keys/signing_key > headers

    Example: curl -H @headers --data-binary @event.json http://127.0.0.1:8080/webhooks
    """
    content = sources.read_bytes(file)
    chosen = signing_key(key, key_file)
    if message_id is None:
        found = list(sources.events(content))
        message_id = found[0].id if len(found) == 1 else None
    if message_id is None:
        raise UsageError(f"{file} has no event id: give --id with visible ASCII")
    headers = chosen.sign(message_id, int(time.time()) if timestamp is None else timestamp, content)
    if as_json:
        print_json(headers)
        return
    for name, value in headers.items():
        typer.echo(f"{name}: {value}")
