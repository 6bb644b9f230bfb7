"""What commands print where nobody sits before it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("target", "stream"), [("console", "stdout"), ("errors", "stderr")])
def test_a_line_stays_a_line_in_a_pipe(target: str, stream: str) -> None:
    """However long: it is not broken at the width of a terminal that is not there."""
    program = f"from tallyhook.cli.output import {target}; {target}.print('word ' * 60, markup=False)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert getattr(done, stream).splitlines() == ["word " * 60]
