"""The start of a server process as far as its first answer, with an error that can be acted on."""

import threading
from collections.abc import Callable

from tallyhook.errors import LocalStackError
from tallyhook.local.process import ManagedProcess
from tallyhook.local.readiness import await_answer
from tallyhook.local.state_files import tail


def launch(
    process: ManagedProcess,
    attempt: Callable[[], str | None],
    *,
    seconds: float,
    cancelled: threading.Event,
    next_step: str,
) -> None:
    """Starts `process` and returns when `attempt` returns None; else stops it and raises LocalStackError.

    `cancelled` ends the wait from another thread. `next_step` is what the message advises beside reading the log.
    """
    process.start()
    reason = await_answer(attempt, seconds, lambda: process.running() and not cancelled.is_set())
    if reason is None and not cancelled.is_set():
        return
    code = process.exit_code
    process.stop()
    if cancelled.is_set():
        raise LocalStackError(f"the start of {process.name} was given up because the stack is being stopped")
    what = f"ended with code {code}" if code is not None else f"did not answer in {seconds:.0f} s"
    raise LocalStackError(
        f"{process.name} {what}: {reason}\nLast lines of {process.log_path}:\n{tail(process.log_path)}\n"
        f"Next: read that log. {next_step}"
    )
