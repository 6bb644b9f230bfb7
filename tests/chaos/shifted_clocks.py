"""Wall clocks of single processes that a test sets forward and back, while the machine's own stays as it is."""

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock_shift.c")
NANOSECONDS = 1_000_000_000
BUILD_SECONDS = 60.0


class NoCompiler(Exception):
    """What shifts the clocks cannot be built on this machine."""


class ShiftedClocks:
    """A folder with a file for each process, named for its last argument; `environment` goes to the pipeline.

    Raises:
        NoCompiler: there is none, or it does not build a library for this system.
    """

    def __init__(self, folder: Path, *names: str) -> None:
        folder.mkdir()
        self._folder, library = folder, folder / "clock_shift.so"
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise NoCompiler("there is no C compiler")
        built = subprocess.run(
            [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl", "-pthread"],
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if built.returncode != 0:
            raise NoCompiler(built.stderr[-1000:])
        for name in names:
            self.set(name, 0)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_SHIFT_FOLDER": str(folder)}

    def set(self, name: str, seconds: float) -> None:
        """From now on the clock of that process is so far ahead of the machine's, or behind it where below zero."""
        shift = struct.pack("=q", int(seconds * NANOSECONDS))
        file = self._folder / name
        if not file.exists():
            file.write_bytes(shift)
            return
        # Written in place: the processes have this very file mapped.
        with file.open("r+b", buffering=0) as mapped:
            mapped.write(shift)
