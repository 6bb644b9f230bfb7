"""Logs: one JSON object a line, whatever is logged and from whichever thread."""

import json
import logging
import threading
from collections.abc import Iterator

import pytest

from tallyhook import logs


@pytest.fixture(autouse=True)
def handlers_as_before() -> Iterator[None]:
    """The root logger is global: it gets its handlers back."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level


def test_each_record_is_one_json_line_with_the_component(capsys: pytest.CaptureFixture[str]) -> None:
    """Control characters are escaped; a thread's records name the component too, the standard library's as well."""
    logs.configure("sink", "info", "json")
    logs.logger("a").info("two\nlines", event_id="evt\r\n1")
    thread = threading.Thread(target=lambda: logging.getLogger("b").warning("from a thread"))
    thread.start()
    thread.join()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["component"] for line in lines] == ["sink", "sink"]
    assert lines[0]["event"] == "two\nlines"
    assert lines[0]["event_id"] == "evt\r\n1"
    assert lines[1]["level"] == "warning"
