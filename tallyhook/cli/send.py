"""`tallyhook send`: sign and post a file or a scenario."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tallyhook.cli.escaping import escaped
from tallyhook.cli.output import JsonOption, errors, print_json
from tallyhook.cli.signing_options import (
    FileArgument,
    IdOption,
    KeyFileOption,
    KeyOption,
    TimestampOption,
    signing_key,
)
from tallyhook.clock import SystemClock
from tallyhook.errors import UsageError
from tallyhook.gateway import sources
from tallyhook.gateway.fresh import freshened
from tallyhook.gateway.posting import Answer, Poster
from tallyhook.gateway.signing import SigningKey, webhook_id
from tallyhook.operations.awaiting import Awaiting, Judged
from tallyhook.postgres import connect
from tallyhook.settings import load


@dataclass(frozen=True, slots=True)
class Sending:
    """How each event is posted."""

    key: SigningKey
    timestamp: int | None
    tamper: bool

    def attempt(self, poster: Poster, message_id: str, event: sources.SourceEvent) -> Answer:
        """Signs at this moment and posts; what came back."""
        timestamp = int(time.time()) if self.timestamp is None else self.timestamp
        headers = self.key.sign(message_id, timestamp, event.body)
        body = event.body[:-1] + bytes([event.body[-1] ^ 1]) if self.tamper and event.body else event.body
        return poster.post(body, headers)


def send(
    file: FileArgument,
    url: str = typer.Option("http://127.0.0.1:8080/webhooks", help="Where to post."),
    key: KeyOption = None,
    key_file: KeyFileOption = None,
    times: int = typer.Option(1, min=1, max=1_000_000, help="How often each event is posted."),
    message_id: IdOption = None,
    timestamp: TimestampOption = None,
    tamper: bool = typer.Option(False, "--tamper", help="Change a bit after signing: must be refused with 401."),
    fresh: bool = typer.Option(
        False, "--fresh", help="Give events and their objects new ids and this moment, so that they were never sent."
    ),
    await_verdict: float | None = typer.Option(
        None, "--await-verdict", min=0.1, max=3600, help="Then wait so many seconds for the verdicts in the database."
    ),
    as_json: JsonOption = False,
) -> None:
    """Sign and post FILE: one event, a JSON array of events, or one a line, in their order; each signed when posted.

    Exit code 1 unless every answer was 2xx and, with --await-verdict, every delivery was judged in
    TALLYHOOK_DATABASE_URL and none set aside.

    Example: tallyhook send event.json --key-file keys/signing_key --url http://127.0.0.1:8080/webhooks

    Example: tallyhook send scenario.jsonl --key-file keys/signing_key --times 3 --json

    Example: tallyhook send event.json --key-file keys/signing_key --fresh --await-verdict 30
    """
    events = list(sources.events(sources.read_bytes(file)))
    if not events:
        raise UsageError(f"{file} holds no event")
    if fresh:
        events = list(freshened(events, SystemClock().now()))
    posts = [(_id_of(number, event, message_id), event) for number, event in enumerate(events, start=1)]
    sending = Sending(signing_key(key, key_file), timestamp, tamper)
    poster = Poster(url)
    answers: list[dict[str, object]] = []
    accepted: Counter[str] = Counter()
    judged: list[Judged] = []
    with ExitStack() as open_now:
        open_now.callback(poster.close)
        awaiting = None
        if await_verdict is not None:
            settings = load()
            connection = open_now.enter_context(connect(settings.database, "send"))
            awaiting = Awaiting(connection, settings.installation, (_event_id(*post) for post in posts))
        try:
            for (message_id, event), answer in _attempts(sending, poster, posts, times):
                accepted[_event_id(message_id, event)] += answer.accepted
                if as_json:
                    answers.append({"id": message_id, "status": answer.status, "body": answer.text})
                else:
                    print(f"{message_id}  {answer.status or '---'}  {escaped(answer.text)}")
            if awaiting is not None and await_verdict is not None:
                judged = awaiting.wait(+accepted, await_verdict)
        finally:
            if as_json:
                print_json(answers if await_verdict is None else {"answers": answers, "verdicts": judged})
    if not as_json:
        _print_verdicts(judged)
    if accepted.total() < len(posts) * times or not all(one.good for one in judged):
        raise typer.Exit(1)


def _print_verdicts(judged: list[Judged]) -> None:
    for one in judged:
        for delivery in one.deliveries:
            print(f"{escaped(one.event_id)}  {delivery.verdict}  {escaped(delivery.why)}")
        if one.missing:
            print(f"{escaped(one.event_id)}  no verdict of {one.missing}: `tallyhook explain` says what there is")


def _event_id(message_id: str, event: sources.SourceEvent) -> str:
    """What the stores call it: the id in the bytes, whatever the header says."""
    return event.id or message_id


def _id_of(number: int, event: sources.SourceEvent, given: str | None) -> str:
    """The webhook-id of the event with this number; looked at before the first is posted."""
    found = event.id if given is None else given
    if found is None:
        raise UsageError(f"event {number} has no id: give --id with visible ASCII")
    return webhook_id(found)


def _attempts(
    sending: Sending, poster: Poster, posts: list[tuple[str, sources.SourceEvent]], times: int
) -> Iterator[tuple[tuple[str, sources.SourceEvent], Answer]]:
    columns = (TextColumn("sending"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    total = len(posts) * times
    display = Progress(
        *columns,
        console=errors,
        transient=True,
        disable=total == 1 or not errors.is_terminal,
        # Rich prints what goes to standard output above its bar, on the bar's console. In a pipe that would lose it.
        redirect_stdout=sys.stdout.isatty(),
    )
    with display as progress:
        task = progress.add_task("", total=total)
        for post in posts:
            for _ in range(times):
                yield post, sending.attempt(poster, *post)
                progress.advance(task)
