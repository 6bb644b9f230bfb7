"""Kafka's class path: the jars of `kafka.lock`, fetched from Maven Central through jgo into a shared cache.

Every jar is named with its size and SHA-256, so a download that broke off or was tampered with is found and fetched
again. The cache may be shared by several state directories and filled by several processes at once.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from tallyhook.errors import LocalStackError
from tallyhook.local.download_progress import DownloadProgress
from tallyhook.local.service import Progress, Report
from tallyhook.local.state_files import write_atomically

KAFKA_VERSION = "4.3.0"
LOCK_FILE = Path(__file__).with_name("kafka.lock")
STEP = "kafka-download"
PARALLEL_DOWNLOADS = 6
ATTEMPTS = 3
REQUEST_TIMEOUT_SECONDS = 30
LOCK_WAIT_SECONDS = 600.0
LOCK_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of `kafka.lock`."""

    group: str
    artifact: str
    version: str
    size_bytes: int
    sha256: str

    def path_in(self, repository: Path) -> Path:
        """Where Maven's layout puts it."""
        folder = repository.joinpath(*self.group.split("."), self.artifact, self.version)
        return folder / f"{self.artifact}-{self.version}.jar"


def default_cache_dir() -> Path:
    """`tallyhook` in XDG_CACHE_HOME, else in ~/.cache."""
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache").absolute() / "tallyhook"


def read_lock() -> list[Jar]:
    """The jars that make Kafka."""
    jars = []
    for line in LOCK_FILE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            coordinate, size, digest = line.split(" ")
            group, artifact, version = coordinate.split(":")
            jars.append(Jar(group, artifact, version, int(size), digest))
    return jars


def kafka_class_path(cache: Path, report: Report, cancelled: Event, *, maven_url: str | None = None) -> list[Path]:
    """The jars in the cache, fetched first where they are missing or damaged.

    `maven_url` is a mirror; None leaves the choice to jgo, which is Maven Central.

    Raises LocalStackError, also when `cancelled` is set meanwhile; what has arrived is kept for the next time.
    """
    jars = read_lock()
    repository = cache / f"kafka-{KAFKA_VERSION}"
    paths = [jar.path_in(repository) for jar in jars]
    if _complete(jars, repository):
        return paths
    try:
        repository.mkdir(parents=True, exist_ok=True)
        with _sole_writer(repository / "download.lock", report, cancelled):
            if not _complete(jars, repository):
                (repository / "complete").unlink(missing_ok=True)
                _fetch_missing(jars, repository, maven_url, report, cancelled)
                write_atomically(repository / "complete", LOCK_FILE.read_text(encoding="utf-8"))
    except OSError as failure:
        raise LocalStackError(
            f"Kafka's jars cannot be kept in {repository}: {failure}; "
            "free some space or set TALLYHOOK_CACHE_DIR to another folder"
        ) from failure
    return paths


def _complete(jars: list[Jar], repository: Path) -> bool:
    """A marker of this very list, and every file there in full length (what it holds was checked before)."""
    try:
        if (repository / "complete").read_text(encoding="utf-8") != LOCK_FILE.read_text(encoding="utf-8"):
            return False
        return all(jar.path_in(repository).stat().st_size == jar.size_bytes for jar in jars)
    except OSError:
        return False


def _fetch_missing(jars: list[Jar], repository: Path, maven_url: str | None, report: Report, cancelled: Event) -> None:
    missing = [jar for jar in jars if not _intact(jar, repository)]
    total_bytes = sum(jar.size_bytes for jar in missing)
    message = f"Apache Kafka {KAFKA_VERSION}, {len(missing)} jars"
    progress = DownloadProgress(STEP, message, total_bytes, report, cancelled)
    progress.tell()
    pool = ThreadPoolExecutor(PARALLEL_DOWNLOADS, thread_name_prefix="kafka-jars")
    try:
        for outcome in [pool.submit(_fetch, jar, repository, maven_url, progress) for jar in missing]:
            outcome.result()
    finally:
        # After a failure the jars that nobody has begun are not fetched any more.
        pool.shutdown(wait=True, cancel_futures=True)
    progress.tell()


def _fetch(jar: Jar, repository: Path, maven_url: str | None, progress: DownloadProgress) -> None:
    """Fetches one jar, anew when what came is not what was promised."""
    from jgo.maven import MavenContext, PythonResolver

    context = MavenContext(
        resolver=PythonResolver(progress_callback=progress.file),
        repo_cache=repository,
        remote_repos=None if maven_url is None else {"mirror": maven_url},
        timeout=REQUEST_TIMEOUT_SECONDS,
    )
    reason = ""
    for attempt in range(ATTEMPTS):
        progress.demand_going_on()
        jar.path_in(repository).unlink(missing_ok=True)
        try:
            context.project(jar.group, jar.artifact).at_version(jar.version).artifact().resolve()
        # jgo raises RuntimeError for what it cannot find; the errors of the network are OSErrors.
        except (OSError, RuntimeError) as failure:
            reason = str(failure)
        else:
            if _intact(jar, repository):
                return
            reason = "what arrived is not the promised file (its SHA-256 differs)"
        time.sleep(0.5 * (attempt + 1))
    jar.path_in(repository).unlink(missing_ok=True)
    raise LocalStackError(
        f"{jar.group}:{jar.artifact}:{jar.version} could not be fetched from {maven_url or 'Maven Central'}: {reason}. "
        "Check the network and try again (what has arrived is kept), "
        "or set TALLYHOOK_KAFKA_BOOTSTRAP to a Kafka of your own"
    )


def _intact(jar: Jar, repository: Path) -> bool:
    try:
        with jar.path_in(repository).open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest() == jar.sha256
    except OSError:
        return False


@contextmanager
def _sole_writer(path: Path, report: Report, cancelled: Event) -> Iterator[None]:
    """Waits, and says so, while another process fills the cache."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        told = False
        while not _locked(handle):
            if time.monotonic() >= deadline or cancelled.is_set():
                raise LocalStackError(
                    f"another process is downloading Kafka into {path.parent} and was waited for in vain; "
                    "end it, or set TALLYHOOK_CACHE_DIR to another folder"
                )
            if not told:
                report(Progress(STEP, "waiting for another process that downloads the same"))
                told = True
            time.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
