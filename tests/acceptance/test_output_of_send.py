"""`tallyhook send` in a shell whose standard output is a pipe: results go there, the bar to the terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from tallyhook.gateway.signing import SigningKey

TIMES = 4


def drained(terminal: int) -> str:
    """What was written to a terminal whose writers have ended."""
    parts = []
    try:
        while part := os.read(terminal, 65_536):
            parts.append(part)
    except OSError:
        # The other end is closed: Linux says so by an error.
        pass
    return b"".join(parts).decode()


def test_results_are_lines_of_standard_output(tmp_path: Path) -> None:
    """One for each post, nothing of the bar among them, and none of them on the terminal."""
    event = tmp_path / "event.json"
    event.write_text('{"id":"evt_1"}')
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TALLYHOOK_")}
    terminal, other_end = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "tallyhook", "send", str(event), "--times", str(TIMES), "--url", "http://127.0.0.1:1/"],
        env=clean | {"TALLYHOOK_SIGNING_KEY": SigningKey.generate().secret_text(), "TERM": "xterm", "COLUMNS": "40"},
        stdout=subprocess.PIPE,
        stderr=other_end,
        timeout=60,
    )
    os.close(other_end)
    shown = drained(terminal)
    os.close(terminal)
    lines = done.stdout.decode().splitlines()
    assert [line.startswith("evt_1  ---  no answer: ") for line in lines] == [True] * TIMES, done.stdout
    assert "\x1b" not in done.stdout.decode()
    assert "sending" in shown
    assert "no answer" not in shown
    assert done.returncode == 1
