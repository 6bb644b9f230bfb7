"""Where PostgreSQL's data and binaries live when root starts it and a parent folder bars its OS user."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tallyhook.errors import LocalStackError
from tallyhook.local import postgres_home
from tallyhook.local.ports import Ports
from tallyhook.local.postgres_server import PostgresServer
from tests.integration.local.conftest import no_report

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another OS user")


@pytest.fixture
def barred(tmp_path: Path) -> Iterator[Path]:
    """A state directory below a folder that only its owner may enter."""
    parent = tmp_path / "private"
    parent.mkdir(mode=0o700)
    yield parent / "state"
    postgres_home.discard(parent / "state")


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A state directory that everybody may walk to."""
    path = Path("/tmp") / f"tallyhook-test-{os.getpid()}"
    path.mkdir(mode=0o755)
    yield path / "state"
    shutil.rmtree(path)


def server(state_dir: Path) -> PostgresServer:
    """A server for that state directory, not started."""
    return PostgresServer(state_dir, Ports(state_dir), no_report)


def test_behind_a_private_folder_it_lives_in_the_temporary_directory(barred: Path) -> None:
    """It starts, a link in the state directory leads to the data, and no mode of the private folder is changed."""
    before = stat.S_IMODE(barred.parent.stat().st_mode)
    one = server(barred)
    one.start()
    try:
        with psycopg.connect(one.address) as connection:
            assert connection.execute("SELECT current_setting('fsync'), current_user").fetchone() == ("on", "tallyhook")
        link = barred / "postgres"
        assert link.is_symlink()
        assert not link.resolve().is_relative_to(barred)
        assert str(barred) in (link.resolve().parent / "README").read_text(encoding="utf-8")
        assert stat.S_IMODE(barred.parent.stat().st_mode) == before == 0o700
    finally:
        one.stop()
    place = (barred / "postgres").resolve().parent
    one.discard()
    assert not place.exists()
    assert not (barred / "postgres").is_symlink()


def test_where_its_user_may_walk_it_lives_in_the_state_directory(open_dir: Path) -> None:
    """No link, and the data belongs to the other user alone."""
    one = server(open_dir)
    one.start()
    one.stop()
    data = open_dir / "postgres"
    assert not data.is_symlink()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert data.stat().st_uid != 0


def test_data_of_a_state_directory_that_was_removed_is_not_taken_up(barred: Path) -> None:
    """A new state directory of the same path begins with an empty database."""
    one = server(barred)
    one.start()
    try:
        with psycopg.connect(one.address) as connection:
            connection.execute("CREATE TABLE old (id int)")
    finally:
        one.stop()
    shutil.rmtree(barred)
    another = server(barred)
    another.start()
    try:
        with psycopg.connect(another.address) as connection:
            assert connection.execute("SELECT to_regclass('old')").fetchone() == (None,)
    finally:
        another.stop()


def test_data_that_a_cleaner_took_is_an_explained_error(barred: Path) -> None:
    """It must not begin anew silently: Kafka's side of the state directory goes on where it was."""
    home = postgres_home.find(barred)
    shutil.rmtree(home.data)
    with pytest.raises(LocalStackError, match=r"is gone .* remove .*state"):
        postgres_home.find(barred)


def test_a_folder_that_another_put_there_is_refused(barred: Path) -> None:
    """The name in the temporary directory is predictable, so whose it is is looked at."""
    place = postgres_home.find(barred).data.parent
    (barred / "postgres").unlink()
    shutil.rmtree(place)
    place.mkdir()
    os.chown(place, 65534, 65534)
    try:
        with pytest.raises(LocalStackError, match="is not a folder of ours"):
            postgres_home.find(barred)
    finally:
        shutil.rmtree(place)


def test_data_of_another_user_is_an_explained_error(open_dir: Path) -> None:
    """Made without root and started as root, or the other way round."""
    (open_dir / "postgres").mkdir(parents=True)
    with pytest.raises(LocalStackError, match="it was made with other rights"):
        postgres_home.find(open_dir)
