"""A Prometheus that scrapes given pages, on a port and in a folder of its own."""

import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.alerts.promtool import program
from tests.running import await_true

START_SECONDS = 30.0
STOP_SECONDS = 20.0


class Prometheus:
    """A context: it runs within.

    Args:
        pages: addresses of `/metrics`, by the instance's name.
        rules: the file of alert rules.
    """

    def __init__(self, folder: Path, pages: Mapping[str, str], rules: Path) -> None:
        self._folder = folder
        self._binary = program("prometheus")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [
                {
                    "job_name": "tallyhook",
                    "static_configs": [
                        {"targets": [urlsplit(page).netloc], "labels": {"instance": name}}
                        for name, page in pages.items()
                    ],
                }
            ],
        }
        self._config = folder / "prometheus.yml"
        self._config.write_text(yaml.safe_dump(config), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Prometheus":
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    self._binary,
                    f"--config.file={self._config}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
            )
        await_true(self._is_ready, START_SECONDS, "Prometheus to be ready")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(STOP_SECONDS)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """The series of a query at this moment."""
        found: list[dict[str, Any]] = self._get("query", query=expr)["result"]
        return found

    def value(self, expr: str) -> float | None:
        """The only value of a query; None where it finds nothing."""
        found = self.query(expr)
        return float(found[0]["value"][1]) if found else None

    def rules(self) -> list[dict[str, Any]]:
        """Every rule as Prometheus sees it."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, what: str, **parameters: str) -> Any:
        url = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.HTTPError):
            return False
