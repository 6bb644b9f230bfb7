"""Header names that are not UTF-8 stop no reader."""

import struct

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from streams.faust_headers import ReadableRecords

PLAIN, GZIP = 0, 1


def batch(first_offset: int, names: list[str], codec: int = PLAIN) -> bytes:
    """A record batch as the broker hands it out; ZZ becomes two bytes that are not UTF-8."""
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for number, name in enumerate(names):
        builder.append(number, timestamp=1, key=b"k", value=b"v", headers=[(name, b"1"), ("x-none", None)])
    built = bytearray(builder.build())
    struct.pack_into(">q", built, 0, first_offset)
    return bytes(built).replace(b"ZZ", b"\xff\xfe")


def read(records: ReadableRecords) -> list[tuple[int, str]]:
    """Offsets and names, those that the fetcher leaves out because it has had them left out."""
    found, following = [], 0
    while records.has_next():
        taken = records.next_batch()
        assert not taken.is_control_batch
        for record in taken:
            if record.offset >= following:
                assert record.headers[1] == ("x-none", None)
                found.append((record.offset, record.headers[0][0]))
                following = record.offset + 1
        assert taken.next_offset == following
    return found


def test_every_record_is_read_and_the_odd_name_can_be_told() -> None:
    """Those before and after it in the fetch, too; the bytes come as lone surrogates."""
    data = batch(0, ["a", "b"]) + batch(2, ["c", "ZZ", "d"]) + batch(5, ["e"])
    names = ["a", "b", "c", "\udcff\udcfe", "d", "e"]
    assert list(enumerate(names)) == read(ReadableRecords(data))
    assert ReadableRecords(data).size_in_bytes() == len(data)


def test_aiokafka_alone_cannot_read_it() -> None:
    """Without which there would be nothing to repair."""
    records = MemoryRecords(batch(0, ["ZZ"]))
    taken = records.next_batch()
    assert taken is not None
    with pytest.raises(UnicodeDecodeError):
        list(taken)


def test_a_compressed_batch_is_read_likewise() -> None:
    """The whole batch is decompressed before its names are looked at."""
    assert read(ReadableRecords(batch(7, ["a", "b"], GZIP))) == [(7, "a"), (8, "b")]
