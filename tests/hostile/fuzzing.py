"""Runs one property under Atheris, which changes bytes until it reaches code that it has not seen (libFuzzer).

`python -m tests.hostile.fuzz_envelope -max_total_time=30`; every option of libFuzzer is taken. A finding is written to
`crash-...` in the working directory and is given as an argument to be tried again.
"""

import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

INSTRUMENTED = ["ingress", "schemas", "sinks", "json"]


def fuzz(prepare: Callable[[], Callable[[bytes], None]], seeds: Callable[[], Iterable[bytes]]) -> None:
    """Searches until libFuzzer's bounds are reached; an exception of the property ends the process with a trace.

    Args:
        prepare: imports what is to be instrumented, and gives the property.
        seeds: gives inputs to begin with, unless a folder of them is given on the command line; called after `prepare`,
            since what it imports first would not be instrumented.
    """
    import atheris

    with atheris.instrument_imports(include=INSTRUMENTED):
        check = prepare()
    with tempfile.TemporaryDirectory(prefix="tallyhook-fuzz-") as folder:
        for number, seed in enumerate(seeds()):
            (Path(folder) / f"{number:05d}").write_bytes(seed)
        given = any(not argument.startswith("-") for argument in sys.argv[1:])
        atheris.Setup(sys.argv if given else [*sys.argv, folder], check)
        # Ends the process itself; the folder is one of the temporary ones.
        atheris.Fuzz()
