"""A real file system of a few hundred megabytes that a test fills to the last byte and frees again."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallyhook.local.postgres_home import SERVER_USER

MEGABYTE = 1 << 20


class NotPermitted(Exception):
    """This process may not mount a file system."""


class SmallDisk:
    """A mounted file system; `fill` leaves no byte of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Takes all the space that is left."""
        with self._ballast.open("ab", buffering=0) as file:
            for piece in (MEGABYTE, 4096, 1):
                try:
                    while True:
                        file.write(b"\0" * piece)
                except OSError:
                    continue  # no room for so much at once

    def free(self) -> None:
        """Gives the space back."""
        self._ballast.unlink(missing_ok=True)

    def database_in(self, state_dir: Path) -> None:
        """Lets the PostgreSQL of a new state directory keep its data here."""
        account = pwd.getpwnam(SERVER_USER)
        data = self.folder / "data"
        data.mkdir(mode=0o700)
        os.chown(data, account.pw_uid, account.pw_gid)
        state_dir.mkdir(parents=True)
        (state_dir / "postgres").symlink_to(data)


@contextmanager
def small_disk(megabytes: int) -> Iterator[SmallDisk]:
    """Mounts it and takes it away again; raises NotPermitted where only another one may."""
    folder = Path(tempfile.mkdtemp(prefix="small-disk."))
    # PostgreSQL's own user must get in.
    folder.chmod(0o755)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0755", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        if mounted.returncode != 0:
            raise NotPermitted(mounted.stderr.strip())
        yield SmallDisk(folder)
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder, ignore_errors=True)
