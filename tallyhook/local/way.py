"""By which way a state directory has its own servers: decided once and kept, since each way has its own data."""

from pathlib import Path
from typing import Literal

from tallyhook.errors import LocalStackError
from tallyhook.local.engine import engine_answers
from tallyhook.local.state_files import write_atomically

Way = Literal["containers", "packages"]


def decide_way(state_dir: Path, wanted: Literal["auto", "containers", "packages"]) -> Way:
    """What the state directory was made with, else what is wanted, else by whether an engine answers.

    Raises LocalStackError when another way is wanted than the one it was made with.
    """
    path = state_dir / "run" / "way"
    known = _read(path)
    if known is not None:
        if wanted not in ("auto", known):
            raise LocalStackError(
                f"{state_dir} was made with {known}, and TALLYHOOK_LOCAL_SERVERS wants {wanted}: its data would not be "
                "found. Unset that setting, or choose another --state-dir"
            )
        return known
    way: Way = ("containers" if engine_answers() else "packages") if wanted == "auto" else wanted
    write_atomically(path, way + "\n")
    return way


def _read(path: Path) -> Way | None:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    if text == "containers":
        return "containers"
    return "packages" if text == "packages" else None
