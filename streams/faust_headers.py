"""Lets aiokafka read records whose header names are not UTF-8, which no client of ours writes but Kafka accepts.

aiokafka 0.14 decodes names strictly while it iterates over a fetched batch: the UnicodeDecodeError crashes Faust's
fetcher, and as the position stays before the record, so does every restart. Such a batch is read again here, by
aiokafka's plain Python parser, with lone surrogates in place of those bytes (PEP 383); the planner sets it aside.
"""

from collections.abc import Iterator
from typing import Any, cast

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords, _MemoryRecordsPy

from tallyhook.logs import logger

log = logger(__name__)


def read_any_name() -> None:
    """Puts `ReadableRecords` in the place where aiokafka's fetcher looks for its parser; for the whole process."""
    fetcher.MemoryRecords = ReadableRecords


class ReadableRecords:
    """The batches of one fetch, as aiokafka's own class gives them, but for names that it cannot decode.

    Args:
        data: what the broker answered for one partition.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._records, self._taken = data, MemoryRecords(data), 0

    def size_in_bytes(self) -> int:
        """As in aiokafka."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """As in aiokafka."""
        return bool(self._records.has_next())

    def next_batch(self) -> Any:
        """As in aiokafka, in a `ReadableBatch`."""
        batch = self._records.next_batch()
        self._taken += 1
        return batch if batch is None else ReadableBatch(batch, self._data, self._taken - 1)


class ReadableBatch:
    """One batch; all but its iteration is aiokafka's.

    Args:
        batch: aiokafka's.
        data: of the whole fetch.
        index: which batch of the fetch it is.
    """

    def __init__(self, batch: Any, data: bytes, index: int) -> None:
        self._batch, self._data, self._index = batch, data, index

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self._batch
        except UnicodeDecodeError:
            log.warning("a batch has header names that are not UTF-8", base_offset=self._batch.base_offset)
            # From its beginning: the fetcher leaves out what it has had.
            yield from _LenientBatch(self._raw())

    def _raw(self) -> memoryview:
        records = _MemoryRecordsPy(self._data)
        for _ in range(self._index):
            records._cache_next()
        return cast("memoryview", records._next_slice)


class _LenientText(bytearray):
    """Bytes whose slices decode to text whatever they are."""

    def __getitem__(self, where: Any) -> Any:
        found = super().__getitem__(where)
        return found if isinstance(found, int) else _LenientText(found)

    def decode(self, encoding: str = "utf-8", errors: str = "surrogateescape") -> str:
        return super().decode(encoding, errors)


class _LenientBatch(_DefaultRecordBatchPy):  # type: ignore[misc]  # aiokafka's types are not followed
    _buffer: bytearray

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        if not isinstance(self._buffer, _LenientText):
            self._buffer = _LenientText(self._buffer)
