"""A stage is ready when its own process says so, and nobody else on its port."""

import http.server
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tallyhook.operations.stage_process import StageProcess

STAGE = """
import http.server, json, os, sys
class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"status": "ok", "pid": os.getpid()}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Pages).serve_forever()
"""


@pytest.fixture
def stranger() -> Iterator[int]:
    """The port of another program that says it is fine."""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"status": "ok", "pid": 1}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = http.server.HTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def stage(program: str, port: int, folder: Path) -> StageProcess:
    """A stage that runs this program."""
    return StageProcess(
        "stream",
        [sys.executable, "-c", program],
        {},
        host="127.0.0.1",
        port_variable="PORT",
        choose_port=lambda: port,
        log_path=folder / "stage.log",
    )


def test_another_process_on_the_port_is_not_ours(stranger: int, tmp_path: Path) -> None:
    """It answers 200, and the stage is not ready: the reason names the stranger."""
    unready = stage("import time; time.sleep(60)", stranger, tmp_path)
    unready.start()
    try:
        assert unready.not_ready() == [f"stream: port {stranger} is answered by process 1, not ours"]
    finally:
        unready.stop()


def test_its_own_answer_makes_it_ready(tmp_path: Path) -> None:
    """The same page from the stage's own process."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as free:
        port = int(free.server_address[1])
    ready = stage(STAGE, port, tmp_path)
    ready.start()
    try:
        for _ in range(100):
            if not ready.not_ready():
                break
            threading.Event().wait(0.1)
        assert ready.not_ready() == []
        assert ready.running()
    finally:
        ready.stop()
    assert "is not running" in ready.not_ready()[0]
