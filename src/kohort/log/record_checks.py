"""Proves that the records of a batch are what its header says, as Kafka's broker does before it appends.

Every record is looked at: its size, its place, the sizes of its parts. In Python that is about a microsecond for a
record, so runs of records of the same layout are proved in columns: what is at the same place of each record is one
strided slice, and compared in one go, some 30 ns a record. Those that differ in the sizes of key and value alone take
ten times as long (`uneven_records`). For these and others there is a compiled loop, where numba is installed and there
are many (`record_kernel`). What isn't proved so is looked at one by one, and named if it is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kohort.log.record_kernel import KERNEL, Check
from kohort.log.uneven_records import parts_fit, walk
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.records.batch import NO_TIMESTAMP, BatchHeader
from kohort.protocol.records.varint import read_varint

RECORDS_A_SLICE: Final = 1000
"""Records that are looked at one by one before others get their turn."""

_HEADERS_A_SLICE: Final = 500

MAX_NAMED: Final = 100
"""Records whose errors are listed."""

_COLUMNS_BYTES: Final = 256 * 1024
"""Bytes of records that are proved in columns at a time: each column is read through all of them, from a near cache."""

_SHORTEST_RUN: Final = 8
_WORTH_A_TRY: Final = 32
"""After so many records of other layouts, a run is looked for again."""

_SHORTEST_UNEVEN: Final = 64
_LONGEST_UNEVEN: Final = 2048
"""Records of different sizes that are proved at a time: at first few, as it may be in vain."""

_UNEVEN_AS_ONE: Final = 4
"""So many of them take as long as one that is looked at by itself."""

_NO_RUN: Final = (0, 0, 0)

_ONE_BYTE: Final = 64
_TWO_BYTES: Final = 64 * 128
_ONE: Final = bytes(2 * delta for delta in range(_ONE_BYTE))
_TWO_LOW: Final = bytes(2 * delta & 0x7F | 0x80 for delta in range(_TWO_BYTES))
_TWO_HIGH: Final = bytes(2 * delta >> 7 for delta in range(_TWO_BYTES))
_THREE_MIDDLE: Final = bytes(byte | 0x80 for byte in _TWO_HIGH)
"""Offset deltas as varints: those of one byte; the first and second bytes of those with two, and of those with three,
whose third byte is the same for 8,192 of them."""

_WORTH_A_CALL: Final = 16
"""Records from which on the compiled loop is quicker."""

_COMPILED_BYTES: Final = 4 * 1024 * 1024
"""Bytes of records from which on the compiled loop, which isn't interrupted, would take too long."""

_MOST: Final = 2**63 - 1

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
        self._claimed = header.max_timestamp - header.base_timestamp
        # If the latest that it says were out of range, not all that are earlier would be in it.
        self._trusts_header = timestamps is None or header.max_timestamp <= (
            self._base if self._base == NO_TIMESTAMP else timestamps.latest
        )
        self._bounded = False  # some timestamps are known to be no later than the header says
        self._uneven = _SHORTEST_UNEVEN
        self._errors: list[RecordError] = []
        self._code = ErrorCode.INVALID_RECORD

    def run(self) -> Generator[None, None, int]:
        if KERNEL.check is not None and self._count >= _WORTH_A_CALL and len(self._payload) <= _COMPILED_BYTES:
            found = self._compiled(KERNEL.check)
            if found is not None:
                yield
                return found
        payload, count, size = self._payload, self._count, len(self._payload)
        latest, none = self._base, True
        at = index = stride = one_by_one = 0
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
                    yield from _check_headers(payload, at, end)
                timestamp = self._base + delta
                if timestamp > latest or none:
                    latest, none = timestamp, False
                if self._range is not None and timestamp != NO_TIMESTAMP:
                    earliest_allowed, latest_allowed = self._range
                    if not earliest_allowed <= timestamp <= latest_allowed:
                        self._refuse_timestamp(index, timestamp)
                at = end
                index += 1
                one_by_one += 1
                if index >= slice_ends:
                    slice_ends = index + RECORDS_A_SLICE
                    yield
                if index >= try_from and plain and (key >= 0 or not self._keyed):
                    layout = _Layout(
                        timestamp_at - start, offset_at - start, key_at - start, key_end - start, value_at - start,
                        value_end - start, end - start,
                    )  # fmt: skip
                    run, span, delta = self._run_after(index, at, layout) if end - start == stride else _NO_RUN
                    if not run and stride:
                        run, span, delta = self._uneven_run_after(index, at, layout)
                        one_by_one += run // _UNEVEN_AS_ONE
                    if run:
                        index += run
                        at += span
                        latest = max(latest, self._base + delta)
                        yield
                    else:
                        try_from = index + _WORTH_A_TRY * bool(stride)
                stride = end - start
            if at != size:
                index = max(index - 1, 0)
                raise _MalformedError(f"{size - at} bytes follow the last record")
        except IndexError:
            raise self._error(index, "it goes beyond the end of the batch") from None
        except (_MalformedError, ValueError) as error:
            raise self._error(index, str(error)) from None
        if self._errors:
            raise InvalidRecordsError(self._code, self._errors)
        KERNEL.missed(one_by_one)
        if self._bounded and latest - self._base != self._claimed:
            self._trusts_header = self._bounded = False  # it says a later one than there is
            return (yield from self.run())
        return latest

    def _compiled(self, check: Check) -> int | None:
        """The latest timestamp, if the compiled loop finds nothing wrong."""
        earliest, latest = -_MOST, _MOST
        if self._range is not None:
            earliest = min(max(self._range.earliest - self._base, -_MOST), _MOST)
            latest = min(max(self._range.latest - self._base, -_MOST), _MOST)
        exempt = min(NO_TIMESTAMP - self._base, _MOST)
        found = check(self._payload, self._count, self._keyed, earliest, latest, exempt)
        return None if found is None else self._base + found

    def _run_after(self, index: int, at: int, layout: _Layout) -> tuple[int, int, int]:
        """How many of the records from `index` on, at `at`, have the same layout; their bytes, and their latest
        timestamp delta.

        Each column is compared as a whole. 0 records where something differs that has to be looked at one by one.
        """
        payload, stride = self._payload, layout.stride
        first = at - stride  # the record before, which is proved: what is to be the same is the same as there
        run = min(self._same_width(index, layout), min(len(payload) - at, _COLUMNS_BYTES) // stride)
        if run < _SHORTEST_RUN:
            return _NO_RUN
        # Sizes: of the record, of key and value; and no headers.
        sizes = (*range(layout.timestamp - 1), *range(layout.key, layout.key_end))
        for place in (*sizes, *range(layout.value, layout.value_end), stride - 1):
            column = payload[at + place : at + run * stride : stride]
            same = payload[first + place : first + place + 1]
            if column != same * run:
                run -= len(column.lstrip(same))
                if run < _SHORTEST_RUN:
                    return _NO_RUN
        if not _offsets_follow(payload, at, index, run, layout):
            return _NO_RUN
        run, latest = self._run_of_timestamps(payload, at, run, layout)
        return run, run * stride, latest

    def _uneven_run_after(self, index: int, at: int, layout: _Layout) -> tuple[int, int, int]:
        """The same of records that differ in the sizes of key and value alone."""
        size = layout.timestamp - 1
        head = layout.key - size + 1
        most = min(self._same_width(index, layout), self._uneven)
        self._uneven = _SHORTEST_UNEVEN
        if most < _SHORTEST_RUN or layout.key_end != layout.key + 1:
            return _NO_RUN
        walked = walk(self._payload, at, most, min(at // index * most * 2, _COLUMNS_BYTES))
        run = walked.records
        if run < _SHORTEST_RUN:
            return _NO_RUN
        heads = walked.heads(head)
        in_heads = _Layout(1, layout.offset - size, head - 1, head, head, head, head)
        if len(heads) != run * head:
            return _NO_RUN
        run, latest = self._run_of_timestamps(heads, 0, run, in_heads)  # what comes after is elsewhere in the others
        keys = heads[head - 1 : run * head : head]
        if (
            run < _SHORTEST_RUN
            or not _offsets_follow(heads, 0, index, run, in_heads)
            or not parts_fit(walked, run, keys, head, keyed=self._keyed)
        ):
            return _NO_RUN
        self._uneven = min(4 * most, _LONGEST_UNEVEN)
        return run, walked.starts[run], latest

    def _same_width(self, index: int, layout: _Layout) -> int:
        """How many records from `index` on have an offset of as many bytes; of three, the last changes with 8,192."""
        width = layout.key - layout.offset
        if width > 3:
            return 0
        last = _ONE_BYTE if width == 1 else _TWO_BYTES if width == 2 else index - index % _TWO_BYTES + _TWO_BYTES
        return min(self._count, last) - index

    def _run_of_timestamps(self, payload: bytes, at: int, run: int, layout: _Layout) -> tuple[int, int]:
        """How many of the records have a timestamp of the same width, not before the first and in range."""
        stride = layout.stride
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
        if self._at_most_claimed(columns):
            self._bounded = True
            latest = self._claimed if self._has_claimed(columns) else 0
        elif width == 1:
            latest = max(columns[0]) >> 1
        else:
            # The bytes of each varint as a number: nearly its value, and in the same order.
            numbers = bytearray(4 * run)
            for place, column in enumerate(columns):
                numbers[place if sys.byteorder == "little" else 3 - place :: 4] = column
            greatest = max(memoryview(numbers).cast("I"))
            latest = sum((greatest >> 8 * place & 0x7F) << 7 * place for place in range(width)) >> 1
        if self._range is not None:
            timeless = self._base == NO_TIMESTAMP
            too_early = latest > 0 if timeless else self._base < self._range.earliest
            if too_early or self._base + latest > self._range.latest:
                return 0, 0
        return run, latest

    def _at_most_claimed(self, columns: list[bytes]) -> bool:
        """Whether no timestamp is later than the batch's latest by its header: much quicker to say than which is."""
        if not self._trusts_header or len(columns) > 2 or not 0 <= self._claimed < _TWO_BYTES:
            return False
        claimed = 2 * self._claimed
        if len(columns) == 1:
            return not columns[0].translate(None, bytes(range(min(claimed, 127) + 1)))
        low, high = columns
        most = bytes([claimed >> 7])
        if high.translate(None, bytes(range(most[0] + 1))):
            return False
        late = len(high.rstrip(most))  # mostly the latest come last
        return most not in high[:late] and not low[late:].translate(None, bytes(range((claimed & 0x7F | 0x80) + 1)))

    def _has_claimed(self, columns: list[bytes]) -> bool:
        claimed = 2 * self._claimed
        if len(columns) == 1:
            return claimed < 128 and bytes([claimed]) in columns[0]
        low, high = columns
        return high[-1] == claimed >> 7 and low[-1] == claimed & 0x7F | 0x80

    def _refuse(self, index: int, reason: str) -> None:
        if len(self._errors) < MAX_NAMED:
            self._errors.append(RecordError(index, reason))

    def _refuse_timestamp(self, index: int, timestamp: int) -> None:
        assert self._range is not None
        if self._errors and self._errors[-1].index == index:
            return  # one error a record: it has no key
        self._code = ErrorCode.INVALID_TIMESTAMP
        earliest, latest = self._range
        self._refuse(index, f"timestamp {timestamp}; it must be from {earliest} to {latest}")

    def _error(self, index: int, reason: str) -> InvalidRecordsError:
        return InvalidRecordsError(ErrorCode.INVALID_RECORD, [RecordError(index, reason)])


def _offsets_follow(payload: bytes, at: int, index: int, run: int, layout: _Layout) -> bool:
    """Whether the records at `at` have the offsets from `index` on."""
    stride, width = layout.stride, layout.key - layout.offset
    stop = at + run * stride
    offset = at + layout.offset
    if width == 1:
        return payload[offset:stop:stride] == _ONE[index : index + run]
    place = index % _TWO_BYTES
    second = _TWO_HIGH if width == 2 else _THREE_MIDDLE
    return (
        payload[offset:stop:stride] == _TWO_LOW[place : place + run]
        and payload[offset + 1 : stop : stride] == second[place : place + run]
        and (width == 2 or payload[offset + 2 : stop : stride] == bytes([index // _TWO_BYTES]) * run)
    )


class _MalformedError(Exception):
    """A record's bytes aren't those of a record."""


def _check_headers(payload: bytes, at: int, end: int) -> Generator[None, None, None]:
    """Checks a record's headers, from their count at `at` to `end`; one record may have millions of them."""
    count, at = read_varint(payload, at)
    if not 0 <= count <= end - at:
        raise _MalformedError(f"{count} headers in {end - at} bytes")
    for number in range(1, count + 1):
        if number % _HEADERS_A_SLICE == 0:
            yield
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
