"""The command line in this process: what a person would type and see, without a start of Python each time."""

import io
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from tallyhook.cli.main import main


@dataclass(frozen=True)
class Done:
    """What a command wrote, and its exit code."""

    returncode: int
    raw: bytes
    raw_errors: bytes

    @property
    def stdout(self) -> str:
        """Standard output as text."""
        return self.raw.decode()

    @property
    def stderr(self) -> str:
        """Standard error as text."""
        return self.raw_errors.decode()


def run(arguments: tuple[str, ...], environment: Mapping[str, str]) -> Done:
    """Runs `tallyhook` without a terminal, with exactly this environment."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    argv, variables = sys.argv, dict(os.environ)
    code: object = 0
    try:
        sys.argv = ["tallyhook", *arguments]
        os.environ.clear()
        os.environ.update(environment)
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = argv
        os.environ.clear()
        os.environ.update(variables)
    assert isinstance(code, int)
    return Done(code, _written(out), _written(err))


def _written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue()
