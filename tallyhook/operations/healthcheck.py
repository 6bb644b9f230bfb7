"""`python -m tallyhook.operations.healthcheck [livez|readyz]`: the health of the process of a container.

One image serves processes with different ports: the first process of the container says which it is. This runs every
few seconds, so that it imports neither the settings nor the command line.
"""

import http.client
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

STAGES: Mapping[str, tuple[str, int]] = {
    "ingress": ("TALLYHOOK_INGRESS_PORT", 8080),
    "stream": ("TALLYHOOK_STREAM_HEALTH_PORT", 9101),
    "sink": ("TALLYHOOK_SINK_HEALTH_PORT", 9102),
    "relay": ("TALLYHOOK_RELAY_HEALTH_PORT", 9103),
}
"""By command: the setting of the port that has the health pages, and its default."""

PAGES = ("livez", "readyz")
ANSWER_SECONDS = 3.0
MAX_REASON_BYTES = 2_000
FIRST_PROCESS = Path("/proc/1/cmdline")


def stage_of(command: Sequence[str]) -> str | None:
    """The stage that a command line runs; None for a job, a shell, or a command of a stage that ends by itself."""
    for at, word in enumerate(command):
        if PurePath(word).name == "tallyhook" and at + 1 < len(command):
            stage, rest = command[at + 1], command[at + 2 :]
            ends = any(not option.startswith("-") for option in rest)
            return stage if stage in STAGES and not ends else None
    return None


def trouble(stage: str, page: str, environment: Mapping[str, str]) -> str | None:
    """Why the page says no, or that it does not answer; None when all is well."""
    variable, default = STAGES[stage]
    port = int(environment.get(variable, default))
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", f"/{page}")
        answer = connection.getresponse()
        text = answer.read(MAX_REASON_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as failure:
        return f"{stage}: /{page} does not answer: {str(failure) or type(failure).__name__}"
    finally:
        connection.close()
    return None if answer.status == http.client.OK else f"{stage}: /{page} {answer.status} {text}"


def main(arguments: Sequence[str], first_process: Path = FIRST_PROCESS) -> str | int:
    """The exit code, or the reason that ends the program with 1.

    Args:
        first_process: its command line, words ended by NUL, as Linux shows it.
    """
    page = arguments[0] if arguments else PAGES[0]
    if page not in PAGES or len(arguments) > 1:
        return f"usage: python -m tallyhook.operations.healthcheck [{'|'.join(PAGES)}]"
    stage = stage_of(first_process.read_bytes().decode("utf-8", "replace").split("\0")[:-1])
    return 0 if stage is None else trouble(stage, page, os.environ) or 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
