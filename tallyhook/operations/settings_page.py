"""Writes `docs/settings.md` from the settings themselves: `python -m tallyhook.operations.settings_page`."""

import argparse
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from tallyhook.settings import COMPONENTS, PROFILES, SettingDescription, describe

DEFAULT_PAGE = Path("docs/settings.md")

_HEADINGS: Mapping[str, str] = {
    "process": "Every process",
    "local": "Local stack",
    "gaps": "Sequence gaps",
    "gateway_api": "The gateway's API",
    "gateway_sim": "Simulated gateway",
}
"""Where the component's own name does not make a heading."""

_INTRODUCTION = """\
# Settings

<!-- Written by `python -m tallyhook.operations.settings_page`; a test holds it in step with the program. -->

Every setting is an environment variable. `tallyhook settings` prints the same list with the values of the moment and
ends with 2 when one is wrong; so does every command that reads them, with the variable, its value and its bounds:

```
TALLYHOOK_SINK_BATCH_ROWS=0: must be 1..5000 (rows)
```

- An empty variable counts as unset.
- A **secret** may stand in a file instead: give the file's path in the variable with `_FILE` behind its name, such as
  `TALLYHOOK_DATABASE_PASSWORD_FILE=/run/secrets/database-password`. A value that is given directly wins. Blanks and
  line ends around the content are dropped.
- A variable that begins with `TALLYHOOK_` and is none of these is a typing error: `tallyhook settings` names it.
"""


def page() -> str:
    """The whole page as Markdown."""
    parts = [_INTRODUCTION]
    for component, rows in groupby(describe(), key=lambda row: row.component):
        parts.append(
            f"\n## {_HEADINGS.get(component, component.capitalize())}\n\n{_summary(component)}\n\n{_table(list(rows))}"
        )
    parts.append(f"\n## What a profile sets\n\n{_profiles()}")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    """Writes the page, or with `--check` compares it: 0 in step, 1 not."""
    parser = argparse.ArgumentParser(prog="python -m tallyhook.operations.settings_page", description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT_PAGE, help=f"default {DEFAULT_PAGE}")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when it is out of step")
    chosen = parser.parse_args(arguments)
    wanted = page()
    if not chosen.check:
        chosen.file.write_text(wanted, encoding="utf-8")
        return 0
    if chosen.file.exists() and chosen.file.read_text(encoding="utf-8") == wanted:
        return 0
    sys.stderr.write(f"{chosen.file} is out of step: run `python -m tallyhook.operations.settings_page`\n")
    return 1


def _summary(component: str) -> str:
    return (COMPONENTS[component].__doc__ or "").strip()


def _table(rows: list[SettingDescription]) -> str:
    lines = ["| variable | meaning | default | allowed | unit |", "|---|---|---|---|---|"]
    lines += [
        f"| `{row.variable}` | {_cell(row.meaning)}{' **(secret)**' if row.secret else ''}"
        f" | {_code(row.default)} | {_code(row.bounds)} | {_cell(row.unit)} |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _profiles() -> str:
    names = list(PROFILES)
    knobs = list(PROFILES[names[0]].__dataclass_fields__)
    lines = [f"| | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    lines += [f"| {knob} | {' | '.join(str(getattr(PROFILES[name], knob)) for name in names)} |" for knob in knobs]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _code(text: str) -> str:
    """A value as one writes it in the environment; words for nothing stay words."""
    if text in ("", "unset"):
        return text
    return f"`{_cell(text)}`"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
