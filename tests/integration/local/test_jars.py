"""The download of Kafka's jars, from a real HTTP server that serves what the machine's cache holds."""

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tallyhook.errors import LocalStackError
from tallyhook.local import jars
from tallyhook.local.jars import KAFKA_VERSION, Jar, default_cache_dir, kafka_class_path, read_lock
from tallyhook.local.service import Progress
from tallyhook.settings import LocalSettings
from tests.integration.local.conftest import await_true, line_of, no_report, running_program

CHOSEN = "kafka-raft"


@dataclass
class Mirror:
    """A Maven repository on 127.0.0.1; `gate` holds every answer while it is cleared."""

    url: str = ""
    asked: list[str] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    spoil: bool = False


@pytest.fixture(scope="module")
def full_cache() -> Path:
    """The machine's own cache, filled from Maven Central where it is not yet."""
    cache = LocalSettings().cache_dir or default_cache_dir()
    kafka_class_path(cache, no_report, threading.Event())
    return cache


@pytest.fixture
def mirror(full_cache: Path) -> Iterator[Mirror]:
    """Serves the full cache."""
    state = Mirror()
    state.gate.set()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            state.gate.wait(60)
            state.asked.append(self.path.rsplit("/", 1)[-1])
            if state.spoil and self.path.endswith(".jar"):
                self.send_response(200)
                self.send_header("Content-Length", "5")
                self.end_headers()
                self.wfile.write(b"wrong")
            else:
                super().do_GET()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it
            pass

    folder = str(full_cache / f"kafka-{KAFKA_VERSION}")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    yield state
    state.gate.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def cache(full_cache: Path, tmp_path: Path) -> Path:
    """A complete cache of the test's own."""
    shutil.copytree(full_cache, tmp_path / "cache of one", copy_function=shutil.copyfile)
    return tmp_path / "cache of one"


def path_of(cache: Path, artifact: str = CHOSEN) -> Path:
    """The jar of one artifact in a cache."""
    return jar_of(artifact).path_in(cache / f"kafka-{KAFKA_VERSION}")


def jar_of(artifact: str = CHOSEN) -> Jar:
    """The line of the lock file."""
    return next(jar for jar in read_lock() if jar.artifact == artifact)


def marker_of(cache: Path) -> Path:
    """What says that a cache is complete."""
    return cache / f"kafka-{KAFKA_VERSION}" / "complete"


def fetch(cache: Path, mirror: Mirror) -> list[Path]:
    """The class path from that cache, filled from the mirror."""
    return kafka_class_path(cache, no_report, threading.Event(), maven_url=mirror.url)


def test_a_complete_cache_is_used_without_asking_anybody(cache: Path, mirror: Mirror) -> None:
    """No request is made when everything is there."""
    paths = fetch(cache, mirror)
    assert len(paths) == len(read_lock())
    assert all(path.exists() for path in paths)
    assert mirror.asked == []


@pytest.mark.parametrize("interrupted", [True, False], ids=["while downloading", "after completion"])
def test_a_half_downloaded_jar_is_fetched_again(cache: Path, mirror: Mirror, interrupted: bool) -> None:
    """A jar cut short is repaired, and only that one is fetched."""
    jar = path_of(cache)
    whole = jar.read_bytes()
    jar.write_bytes(whole[: len(whole) // 2])
    if interrupted:
        marker_of(cache).unlink()
    fetch(cache, mirror)
    assert jar.read_bytes() == whole
    assert [name for name in mirror.asked if name.endswith(".jar")] == [jar.name]
    assert marker_of(cache).exists()


def test_a_jar_that_was_altered_is_not_believed(cache: Path, mirror: Mirror) -> None:
    """The same length with other bytes in an unfinished cache: the checksum decides."""
    jar = path_of(cache)
    whole = jar.read_bytes()
    jar.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    marker_of(cache).unlink()
    fetch(cache, mirror)
    assert jar.read_bytes() == whole


def test_a_mirror_that_serves_other_bytes_is_refused(cache: Path, mirror: Mirror) -> None:
    """After some attempts there is an error that names the jar, nothing false is kept, and no marker is left."""
    path_of(cache).unlink()
    mirror.spoil = True
    with pytest.raises(LocalStackError, match=rf"{CHOSEN}:{KAFKA_VERSION} could not be fetched .* SHA-256 differs"):
        fetch(cache, mirror)
    assert not path_of(cache).exists()
    assert not marker_of(cache).exists()
    mirror.spoil = False
    fetch(cache, mirror)
    assert path_of(cache).stat().st_size == jar_of().size_bytes


def test_no_network_is_an_explained_error(cache: Path) -> None:
    """The message says what to do."""
    path_of(cache).unlink()
    with pytest.raises(LocalStackError, match="Check the network and try again"):
        kafka_class_path(cache, no_report, threading.Event(), maven_url="http://127.0.0.1:1")


def test_progress_is_counted_in_bytes(cache: Path, mirror: Mirror) -> None:
    """The first report knows the total, the last one says that all of it is there."""
    path_of(cache).unlink()
    reports: list[Progress] = []
    kafka_class_path(cache, reports.append, threading.Event(), maven_url=mirror.url)
    size = jar_of().size_bytes
    assert (reports[0].done, reports[0].total) == (0, size)
    assert (reports[-1].done, reports[-1].total) == (size, size)


def test_the_second_of_two_at_once_waits_and_says_so(cache: Path, mirror: Mirror) -> None:
    """One process downloads; the other reports that it waits, and then asks the network for nothing."""
    path_of(cache).unlink()
    mirror.gate.clear()
    other = """
import sys, threading
from pathlib import Path
from tallyhook.local.jars import kafka_class_path
kafka_class_path(Path(sys.argv[1]), lambda p: print(p.message, flush=True), threading.Event(), maven_url=sys.argv[2])
print("done", flush=True)
"""
    with running_program(other, str(cache), mirror.url) as first:
        assert line_of(first) == f"Apache Kafka {KAFKA_VERSION}, 1 jars"
        with running_program(other, str(cache), mirror.url) as second:
            assert line_of(second) == "waiting for another process that downloads the same"
            mirror.gate.set()
            assert line_of(second) == "done"
    assert mirror.asked.count(path_of(cache).name) == 1


def test_a_download_that_is_killed_is_taken_up_by_the_next(cache: Path, mirror: Mirror) -> None:
    """kill -9 in the middle: the lock is free, and what is missing is fetched."""
    path_of(cache).unlink()
    mirror.gate.clear()
    program = """
import sys, threading
from pathlib import Path
from tallyhook.local.jars import kafka_class_path
print("going", flush=True)
kafka_class_path(Path(sys.argv[1]), lambda p: print(p.message, flush=True), threading.Event(), maven_url=sys.argv[2])
"""
    with running_program(program, str(cache), mirror.url) as first:
        assert line_of(first) == "going"
        assert "1 jars" in line_of(first)
        first.kill()
        first.wait()
    mirror.gate.set()
    fetch(cache, mirror)
    assert path_of(cache).stat().st_size == jar_of().size_bytes


def test_a_stop_ends_a_download(cache: Path, mirror: Mirror) -> None:
    """`cancelled` ends it with an error at the next part of a file."""
    path_of(cache).unlink()
    mirror.gate.clear()
    cancelled = threading.Event()
    failures: list[LocalStackError] = []

    def download() -> None:
        try:
            kafka_class_path(cache, no_report, cancelled, maven_url=mirror.url)
        except LocalStackError as failure:
            failures.append(failure)

    thread = threading.Thread(target=download)
    thread.start()
    cancelled.set()
    mirror.gate.set()
    thread.join(30)
    assert [str(failure) for failure in failures] == ["the download was given up because the stack is being stopped"]


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG_CACHE_HOME, else ~/.cache of an empty home; the setting goes before both."""
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_cache_dir() == tmp_path / "home" / ".cache" / "tallyhook"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_dir() == tmp_path / "xdg" / "tallyhook"
    monkeypatch.setenv("TALLYHOOK_CACHE_DIR", str(tmp_path / "own"))
    assert LocalSettings().cache_dir == tmp_path / "own"


def test_nothing_is_written_outside_of_the_cache(
    cache: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """jgo's and Maven's own folders in the user's home are left alone, also in one that is empty."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    path_of(cache).unlink()
    fetch(cache, mirror)
    assert list(home.iterdir()) == []


def test_a_wait_for_another_download_is_bounded(cache: Path, mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that never ends its download is not waited for for ever."""
    path_of(cache).unlink()
    mirror.gate.clear()
    thread = threading.Thread(target=fetch, args=(cache, mirror))
    thread.start()
    assert await_true(lambda: not marker_of(cache).exists())
    monkeypatch.setattr(jars, "LOCK_WAIT_SECONDS", 0.3)
    with pytest.raises(LocalStackError, match="waited for in vain"):
        fetch(cache, mirror)
    mirror.gate.set()
    thread.join(60)
    assert marker_of(cache).exists()
