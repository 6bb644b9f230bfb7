"""A PostgreSQL of a test's own that can lose its last commits, as a failover to a replica that was behind does."""

import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tallyhook.local.ports import Ports
from tallyhook.local.postgres_server import PostgresServer


class LosingDatabase:
    """The server, and one copy of its data."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._server = PostgresServer(folder, Ports(folder), lambda _: None)

    def __enter__(self) -> Self:
        self._server.prepare()
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()
        shutil.rmtree(self._copy, ignore_errors=True)
        self._server.discard()

    @property
    def url(self) -> str:
        """libpq URI; the same over every stop."""
        return self._server.address

    def keep(self) -> None:
        """Copies the data while the server is down, and goes on."""
        self._server.stop()
        _copy(self._data, self._copy)
        self._server.start()

    def lose(self) -> None:
        """Goes on from the copy: whatever was committed since is gone."""
        self._server.stop()
        shutil.rmtree(self._data)
        _copy(self._copy, self._data)
        self._server.start()

    @property
    def _data(self) -> Path:
        return self._server.home.data.resolve()

    @property
    def _copy(self) -> Path:
        return self._data.with_name(self._data.name + ".kept")


def _copy(source: Path, target: Path) -> None:
    """With owners and modes, which the server demands."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True, timeout=120)
