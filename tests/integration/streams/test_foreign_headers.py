"""A foreign writer's header names stop no partition."""

import subprocess
import sys

import pytest

from streams.ending import ENDED_BY_ITSELF
from tests.integration.streams.conftest import MakeWorker
from tests.integration.streams.traffic import Road, event, header_texts, source
from tests.integration.streams.worker import Worker, until


def write_odd(road: Road, compression: str) -> None:
    """Three records in partition 0, as one batch; the middle one has the odd name."""
    program = (sys.executable, "-m", "tests.integration.streams.programs.foreign_writer")
    bootstrap = str(road.kafka.bootstrap)
    subprocess.run([*program, bootstrap, road.names.events, "0", compression], check=True, timeout=60)


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_header_name_that_is_not_utf_8_is_a_dead_letter(road: Road, worker: Worker, compression: str) -> None:
    """The records of its batch come out, each once, with the name spelled out; what follows is judged."""
    write_odd(road, compression)
    good = [event(number, f"dep_{number}", 1) for number in range(40)]  # in every partition
    road.write(good)
    worker.start()
    until(lambda: road.unjudged() == 0, 60, lambda: f"all judged; log ends {worker.log[-3000:]}")
    letters = sorted(road.dead_letters(), key=source)
    assert [message.value() for message in letters] == [b"before", b"odd", b"after"]
    assert [source(message) for message in letters] == [(0, 0), (0, 1), (0, 2)]
    odd = header_texts(letters[1])
    assert odd["ce_detail"] == r"header name x-\xff is not UTF-8"
    assert (odd[r"x-\xff"], odd["x-plain"]) == ("1", "2")
    assert sum(len(messages) for messages in road.outputs().values()) == len(good)


def test_without_the_repair_the_worker_ends_at_the_record_at_every_start(road: Road, make_worker: MakeWorker) -> None:
    """Shows the fault, without which the repair would prove nothing."""
    write_odd(road, "none")
    worker = make_worker("strict", program=("-m", "tests.integration.streams.programs.strict_headers"))
    for _ in range(2):
        worker.start()
        assert worker.wait(60) == ENDED_BY_ITSELF
    assert "UnicodeDecodeError" in worker.log
    assert road.unjudged() > 0
