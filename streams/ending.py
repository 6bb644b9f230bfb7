"""How the process ends when it must not go on: at once, so that nothing is acked that was not done."""

import os
import sys
from typing import NoReturn

from tallyhook.logs import logger

ENDED_BY_ITSELF = 70
"""Exit code of a worker that the watchdog or a failure ended; its supervisor starts another, without a limit."""

log = logger(__name__)


def end_process(reason: str) -> NoReturn:
    """Logs why and ends the process with 70; callable from any thread.

    No clean-up on purpose: what was not acked is done again by the next worker, and a stuck loop cannot stop this.
    """
    log.critical("the worker ends, nothing of the batch is acked", reason=reason)
    sys.stderr.flush()
    os._exit(ENDED_BY_ITSELF)
