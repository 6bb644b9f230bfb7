"""Where the packaging's files stand, and what an environment in them means to the program."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tallyhook.settings import Settings, describe, load, unknown_variables

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "helm" / "tallyhook"
EXAMPLES = (ROOT / "examples" / "helm" / "single-node.yaml", ROOT / "examples" / "helm" / "replicated.yaml")
OWN_VALUES = Path(__file__).with_name("values")
VALUE_SETS = {
    "minimal": EXAMPLES[0],
    "production": EXAMPLES[1],
    "test mode": ROOT / "examples" / "helm" / "test-mode.yaml",
    "KEDA": ROOT / "examples" / "helm" / "autoscaled.yaml",
    "SASL and TLS": OWN_VALUES / "sasl-tls.yaml",
    "everything": OWN_VALUES / "everything.yaml",
}
"""What the chart is rendered with, by name."""


def settings_from(environment: Mapping[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Loads the settings as a process with this environment would.

    A secret that stands in a file is given the content `in-a-file`, and the database's address `host=in-a-file`, since
    the paths are those of a container. Fails for a variable that the program does not know.
    """
    assert unknown_variables(environment) == []
    in_files = {f"{row.variable}_FILE" for row in describe() if row.secret}
    with monkeypatch.context() as patch:
        for row in describe():
            patch.delenv(row.variable, raising=False)
            patch.delenv(f"{row.variable}_FILE", raising=False)
        secret, address = folder / "secret", folder / "address"
        secret.write_text("in-a-file\n", encoding="utf-8")
        address.write_text("host=in-a-file\n", encoding="utf-8")
        files = dict.fromkeys(in_files, secret) | {"TALLYHOOK_DATABASE_URL_FILE": address}
        for name, value in environment.items():
            if name.startswith("TALLYHOOK_"):
                patch.setenv(name, str(files.get(name, value)))
        return load()
