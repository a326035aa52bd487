"""Proves that the records of a batch are what its header says, as Kafka's broker does before it appends.

Every record is looked at: its size, its place, the sizes of its parts. In Python that is about a third of a microsecond
for a record, so runs of records of the same layout are proved in columns: what is at the same place of each record is
one strided slice, and compared in one go. A producer's records mostly have the same layout: the same key and value
sizes, offsets one after the other, and timestamps of the same width.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import NO_TIMESTAMP, BatchHeader
from kohort.protocol.records.varint import read_varint

RECORDS_A_SLICE: Final = 1000
"""Records that are looked at one by one before others get their turn."""

MAX_NAMED: Final = 100
"""Records whose errors are listed."""

_SHORTEST_RUN: Final = 8
_WORTH_A_TRY: Final = 32
"""After so many records of other layouts, a run is looked for again."""

_ONE_BYTE: Final = 64
_TWO_BYTES: Final = 64 * 128
_ONE: Final = bytes(2 * delta for delta in range(_ONE_BYTE))
_TWO_LOW: Final = bytes(2 * delta & 0x7F | 0x80 for delta in range(_TWO_BYTES))
_TWO_HIGH: Final = bytes(2 * delta >> 7 for delta in range(_TWO_BYTES))
"""Offset deltas as varints: those of one byte, and the first and second bytes of those with two."""

_EVEN: Final = bytes(range(0, 256, 2))
_GOES_ON: Final = bytes(range(128, 256))
"""Bytes of a varint that isn't at its end."""


@dataclass(frozen=True, slots=True)
class RecordError:
    """What is wrong with a record; `index` is its place in the batch, from 0."""

    index: int
    reason: str


class InvalidRecordsError(KafkaError):
    """A batch is refused because of some of its records."""

    def __init__(self, code: ErrorCode, errors: list[RecordError]) -> None:
        first = errors[0]
        more = f"; {len(errors) - 1} more records are wrong" if len(errors) > 1 else ""
        super().__init__(code, f"record {first.index}: {first.reason}{more}")
        self.errors = errors


class TimestampRange(NamedTuple):
    """The timestamps that records may have, both included, in ms since 1970."""

    earliest: int
    latest: int


class _Layout(NamedTuple):
    """Where the parts of a record are, from its first byte: timestamp, offset, sizes of key and value, its end."""

    timestamp: int
    offset: int
    key: int
    key_end: int
    value: int
    value_end: int
    stride: int


def check_records(
    payload: bytes, header: BatchHeader, *, keyed: bool, timestamps: TimestampRange | None
) -> Generator[None, None, int]:
    """Checks all records, and yields every so often.

    Args:
        payload: the records, decompressed.
        keyed: whether each needs a key.
        timestamps: None if they don't count.

    Returns:
        The latest timestamp of a record.

    Raises:
        InvalidRecordsError: INVALID_RECORD, or INVALID_TIMESTAMP.
    """
    return (yield from _Check(payload, header, keyed, timestamps).run())


class _Check:
    def __init__(self, payload: bytes, header: BatchHeader, keyed: bool, timestamps: TimestampRange | None) -> None:
        self._payload = payload
        self._count = header.record_count
        self._base = header.base_timestamp
        self._keyed = keyed
        self._range = timestamps
        self._latest_delta = 0
        self._errors: list[RecordError] = []
        self._code = ErrorCode.INVALID_RECORD

    def run(self) -> Generator[None, None, int]:
        payload, count, size = self._payload, self._count, len(self._payload)
        latest, none = self._base, True
        at = index = stride = 0
        try_from = 1
        slice_ends = RECORDS_A_SLICE
        try:
            while index < count:
                start = at
                # Nearly every varint has one or two bytes; calls would take most of the time.
                length = payload[at]
                at += 1
                if length > 127:
                    if (high := payload[at]) > 127:
                        length, at = read_varint(payload, start)
                    else:
                        length, at = (length & 127 | high << 7), at + 1
                        length = length >> 1 ^ -(length & 1)
                else:
                    length = length >> 1 ^ -(length & 1)
                end = at + length
                if length < 0 or end > size:
                    raise _MalformedError(f"{length} bytes, {size - at} are left")
                timestamp_at = at + 1  # after attributes, which nobody uses
                if (delta := payload[timestamp_at]) > 127:
                    delta, at = read_varint(payload, timestamp_at)
                else:
                    delta, at = delta >> 1 ^ -(delta & 1), timestamp_at + 1
                offset_at = at
                if (place := payload[at]) > 127:
                    place, at = read_varint(payload, at)
                else:
                    place, at = place >> 1 ^ -(place & 1), at + 1
                if place != index:
                    raise _MalformedError(f"its offset delta is {place}")
                key_at = at
                if (key := payload[at]) > 127:
                    key, at = read_varint(payload, at)
                else:
                    key, at = key >> 1 ^ -(key & 1), at + 1
                key_end = at
                if key > 0:
                    at += key
                    if at >= end:
                        raise _MalformedError(f"a key of {key} bytes")
                elif key < 0:
                    if key != -1:
                        raise _MalformedError(f"a key of {key} bytes")
                    if self._keyed:
                        self._refuse(index, "it has no key; a compacted topic needs one")
                value_at = at
                if (value := payload[at]) > 127:
                    value, at = read_varint(payload, at)
                else:
                    value, at = value >> 1 ^ -(value & 1), at + 1
                value_end = at
                if value > 0:
                    at += value
                elif value < -1:
                    raise _MalformedError(f"a value of {value} bytes")
                if at >= end:
                    raise _MalformedError(f"a value of {value} bytes")
                plain = payload[at] == 0 and at + 1 == end
                if not plain:
                    _check_headers(payload, at, end)
                timestamp = self._base + delta
                if timestamp > latest or none:
                    latest, none = timestamp, False
                if self._range is not None and timestamp != NO_TIMESTAMP:
                    earliest_allowed, latest_allowed = self._range
                    if not earliest_allowed <= timestamp <= latest_allowed:
                        self._refuse_timestamp(index, timestamp)
                at = end
                index += 1
                if index >= slice_ends:
                    slice_ends = index + RECORDS_A_SLICE
                    yield
                if end - start != stride:
                    stride = end - start
                elif index >= try_from and plain and (key >= 0 or not self._keyed):
                    layout = _Layout(
                        timestamp_at - start, offset_at - start, key_at - start, key_end - start, value_at - start,
                        value_end - start, stride,
                    )  # fmt: skip
                    run, delta = self._run_after(index, at, layout)
                    if run:
                        index += run
                        at += run * stride
                        latest = max(latest, self._base + delta)
                        yield
                    if run < _SHORTEST_RUN:
                        try_from = index + _WORTH_A_TRY
            if at != size:
                index = max(index - 1, 0)
                raise _MalformedError(f"{size - at} bytes follow the last record")
        except IndexError:
            raise self._error(index, "it goes beyond the end of the batch") from None
        except (_MalformedError, ValueError) as error:
            raise self._error(index, str(error)) from None
        if self._errors:
            raise InvalidRecordsError(self._code, self._errors)
        return latest

    def _run_after(self, index: int, at: int, layout: _Layout) -> tuple[int, int]:
        """How many of the records from `index` on, at `at`, have the same layout, and their latest timestamp delta.

        Each column is compared as a whole. 0 records where something differs that has to be looked at one by one.
        """
        payload, stride = self._payload, layout.stride
        width = layout.key - layout.offset
        if width > 2:
            return 0, 0
        first = at - stride  # the record before, which is proved: what is to be the same is the same as there
        most = min(self._count, _ONE_BYTE if width == 1 else _TWO_BYTES) - index
        run = min(most, (len(payload) - at) // stride)
        if run < _SHORTEST_RUN:
            return 0, 0
        # Sizes: of the record, of key and value; and no headers.
        sizes = (*range(layout.timestamp - 1), *range(layout.key, layout.key_end))
        for place in (*sizes, *range(layout.value, layout.value_end), stride - 1):
            column = payload[at + place : at + run * stride : stride]
            rest = column.lstrip(payload[first + place : first + place + 1])
            if rest:
                run -= len(rest)
                if run < _SHORTEST_RUN:
                    return 0, 0
        stop = at + run * stride
        offset = at + layout.offset
        if width == 1:
            if payload[offset:stop:stride] != _ONE[index : index + run]:
                return 0, 0
        elif (
            payload[offset:stop:stride] != _TWO_LOW[index : index + run]
            or payload[offset + 1 : stop : stride] != _TWO_HIGH[index : index + run]
        ):
            return 0, 0
        return self._run_of_timestamps(at, run, layout)

    def _run_of_timestamps(self, at: int, run: int, layout: _Layout) -> tuple[int, int]:
        """How many of the records have a timestamp of the same width, not before the first and in range."""
        payload, stride = self._payload, layout.stride
        width = layout.offset - layout.timestamp
        if width > 4 or (self._base == NO_TIMESTAMP and self._range is not None and width > 1):
            return 0, 0
        columns = [payload[at + place : at + run * stride : stride] for place in range(layout.timestamp, layout.offset)]
        for column in columns[:-1]:
            if column.translate(None, _GOES_ON):
                run = min(run, run - len(column.lstrip(_GOES_ON)))
        last = columns[-1]
        if not last.isascii():
            run = min(run, next(place for place, byte in enumerate(last) if byte > 127))
        if run < _SHORTEST_RUN:
            return 0, 0
        columns = [column[:run] for column in columns]
        if columns[0].translate(None, _EVEN):
            return 0, 0  # a timestamp before the first
        if width == 1:
            latest = max(columns[0]) >> 1
        else:
            # The bytes of each varint as a number: nearly its value, and in the same order.
            numbers = bytearray(4 * run)
            for place, column in enumerate(columns):
                numbers[place if sys.byteorder == "little" else 3 - place :: 4] = column
            greatest = max(memoryview(numbers).cast("I"))
            latest = sum((greatest >> 8 * place & 0x7F) << 7 * place for place in range(width)) >> 1
        if self._range is not None:
            before_1970 = self._base == NO_TIMESTAMP and latest > 0
            if before_1970 or self._base + latest > self._range.latest:
                return 0, 0
        return run, latest

    def _refuse(self, index: int, reason: str) -> None:
        if len(self._errors) < MAX_NAMED:
            self._errors.append(RecordError(index, reason))

    def _refuse_timestamp(self, index: int, timestamp: int) -> None:
        assert self._range is not None
        self._code = ErrorCode.INVALID_TIMESTAMP
        earliest, latest = self._range
        self._refuse(index, f"timestamp {timestamp}; it must be from {earliest} to {latest}")

    def _error(self, index: int, reason: str) -> InvalidRecordsError:
        return InvalidRecordsError(ErrorCode.INVALID_RECORD, [RecordError(index, reason)])


class _MalformedError(Exception):
    """A record's bytes aren't those of a record."""


def _check_headers(payload: bytes, at: int, end: int) -> None:
    """Checks a record's headers, from their count at `at` to `end`."""
    count, at = read_varint(payload, at)
    if not 0 <= count <= end - at:
        raise _MalformedError(f"{count} headers in {end - at} bytes")
    for _ in range(count):
        size, at = read_varint(payload, at)
        if size < 0 or size >= end - at:
            raise _MalformedError(f"a header's key of {size} bytes")
        at += size
        size, at = read_varint(payload, at)
        if size < -1 or max(size, 0) > end - at:
            raise _MalformedError(f"a header's value of {size} bytes")
        at += max(size, 0)
    if at != end:
        raise _MalformedError(f"its parts end {end - at} bytes before its end")
