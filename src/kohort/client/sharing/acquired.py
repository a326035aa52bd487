"""Records that a broker has locked for us: found in a response's batches, and decoded when the user asks for them.

A response has whole batches, of which some offsets may be locked for others. An acquired offset without a record (it
was compacted away, or is of a control batch) is a gap; the broker is told so, or it would hand it out for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat, takewhile
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple

from kohort.client.consuming.completed_fetch import Piece, corrupt_batch, read_fetch
from kohort.client.consuming.decoding import ColumnSource, Deserializer, RowSource, deserialized, with_place
from kohort.client.errors import RecordError, SharedRecordError
from kohort.client.sharing.acknowledgements import OffsetSpan
from kohort.client.types import ShareRecord, TopicPartition
from kohort.protocol.errors import CorruptRecordError

if TYPE_CHECKING:
    import pyarrow as pa

_new_record: Final = partial(tuple.__new__, ShareRecord)


class AcquiredRange(NamedTuple):
    """Locked offsets, the last itself included, with the number of their deliveries, this one included."""

    first: int
    last: int
    delivery_count: int

    @property
    def offsets(self) -> int:
        """How many offsets they are."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class AcquiredPiece:
    """Batches, and which of their offsets are ours. `piece` and `ranges` cover the same offsets."""

    piece: Piece
    ranges: Sequence[AcquiredRange]

    @property
    def offsets(self) -> int:
        """How many offsets are ours."""
        return sum(each.offsets for each in self.ranges)

    @property
    def first_delivery(self) -> bool:
        """Whether none of ours was delivered before."""
        return all(each.delivery_count == 1 for each in self.ranges)


@dataclass(frozen=True, slots=True)
class Acquired:
    """What a response brought of a partition.

    Attributes:
        pieces: in order.
        corrupt: acquired offsets of a corrupt batch; None if there's none.
        missing: acquired offsets whose batches aren't in the response as far as it can be read.
        error: what is corrupt.
    """

    pieces: Sequence[AcquiredPiece]
    corrupt: OffsetSpan | None
    missing: Sequence[OffsetSpan]
    error: SharedRecordError | None


def read_acquired(
    at: TopicPartition, data: bytes, ranges: Sequence[AcquiredRange], *, check: bool, piece_bytes: int
) -> Acquired:
    """Finds acquired offsets in a response's batches.

    Args:
        data: record batches, the last perhaps cut off.
        ranges: the acquired ones, in order.
        check: whether to compare checksums.
        piece_bytes: where to end a piece; a batch isn't divided.
    """
    first, last = ranges[0].first, ranges[-1].last
    fetch = read_fetch(at, data, first, None, check=check, piece_bytes=piece_bytes)
    pieces = [
        AcquiredPiece(piece, mine)
        for piece in fetch.pieces
        if (mine := _within(ranges, piece.offset, piece.next_offset - 1))
    ]
    corrupt, end, error = None, fetch.next_offset, None
    if fetch.error is not None:
        bad = _within(ranges, fetch.error.offset, min(last, fetch.error.next_offset - 1))
        if bad:
            corrupt = OffsetSpan(bad[0].first, bad[-1].last)
            error = _rejected(at, corrupt, fetch.error.reason)
            end = fetch.error.next_offset
    missing = [OffsetSpan(each.first, each.last) for each in _within(ranges, end, last)]
    return Acquired(pieces, corrupt, missing, error)


class DecodedRecords:
    """The records of a piece that are ours, and how many of them have been given.

    Args:
        columns: the module to decode columns with; without it, records are decoded one after another.

    Attributes:
        gaps: acquired offsets without a record.
        rest: if a later batch than the first can't be decoded with those before it, the piece that begins with it.

    Raises:
        SharedRecordError: the first batch is corrupt; `without_first_batch` has what follows.
    """

    def __init__(
        self,
        at: TopicPartition,
        acquired: AcquiredPiece,
        columns: ModuleType | None,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
    ) -> None:
        self._at = at
        self._key_deserializer, self._value_deserializer = key_deserializer, value_deserializer
        piece, ranges = acquired.piece, acquired.ranges
        headers = piece.headers
        decode = RowSource if columns is None else partial(ColumnSource, columns)
        while True:
            try:
                self._source: RowSource | ColumnSource = decode(piece.data, headers) if headers else RowSource(b"", ())
                break
            except CorruptRecordError as error:
                place = error.position
                before = list(takewhile(lambda header: header.position != place, headers))  # noqa: B023
                if not 0 < len(before) < len(headers):
                    raise _first_batch_corrupt(at, acquired, error) from None
                headers = before
        self.rest: AcquiredPiece | None = None
        if len(headers) < len(piece.headers):
            rest = piece.part(len(headers))
            self.rest = AcquiredPiece(rest, _within(ranges, rest.offset, rest.next_offset - 1))
            ranges = _within(ranges, piece.offset, rest.offset - 1)
        self.ranges = ranges
        self._segments = list(self._rows_of(ranges))
        self.gaps = list(self._gaps(ranges)) if sum(e - s for s, e, _ in self._segments) < acquired.offsets else []
        self._at_segment = 0

    def _rows_of(self, ranges: Iterable[AcquiredRange]) -> Iterable[tuple[int, int, int]]:
        """Yields first row, the row after the last, and the delivery count; neighbours of one count as one."""
        before: tuple[int, int, int] | None = None
        for first, last, count in ranges:
            start, end = self._source.first_row(first), self._source.first_row(last + 1)
            if start == end:
                continue
            if before is not None and before[1] == start and before[2] == count:
                before = before[0], end, count
                continue
            if before is not None:
                yield before
            before = start, end, count
        if before is not None:
            yield before

    def _gaps(self, ranges: Iterable[AcquiredRange]) -> Iterable[OffsetSpan]:
        for first, last, _ in ranges:
            start, end = self._source.first_row(first), self._source.first_row(last + 1)
            if end - start == last - first + 1:
                continue
            for row in range(start, end):
                offset = self._source.offset(row)
                if offset > first:
                    yield OffsetSpan(first, offset - 1)
                first = offset + 1
            if first <= last:
                yield OffsetSpan(first, last)

    @property
    def left(self) -> int:
        """Records that weren't given yet."""
        return sum(end - start for start, end, _ in self._segments[self._at_segment :])

    @property
    def first_delivery(self) -> bool:
        """Whether none of them was delivered before."""
        return all(count == 1 for _, _, count in self._segments) and (self.rest is None or self.rest.first_delivery)

    def next_offset(self) -> int | None:
        """Returns the offset of the first record that wasn't given yet."""
        if self._at_segment == len(self._segments):
            return None
        return self._source.offset(self._segments[self._at_segment][0])

    def _step(self, taken: int) -> None:
        start, end, count = self._segments[self._at_segment]
        self._segments[self._at_segment] = start + taken, end, count
        if start + taken == end:
            self._at_segment += 1

    def take(self, most: int) -> list[ShareRecord]:
        """Returns the next records, at most so many, all with one delivery count.

        Raises:
            SharedRecordError: a deserializer fails on the first of them, which counts as given. If it fails on a later
                one, they end before it.
        """
        start, end, count = self._segments[self._at_segment]
        rows = self._source.lists(start, min(end, start + most))
        at = self._at
        try:
            keys = deserialized(at, rows.keys, self._key_deserializer, "key", rows.offsets)
            values = deserialized(at, rows.values, self._value_deserializer, "value", rows.offsets)
        except RecordError as error:
            self._step(1)
            raise SharedRecordError(at, error.offset, error.offset, error.reason) from error.__cause__
        fields = zip(repeat(at[0]), repeat(at[1]), *rows[:2], keys, values, rows.headers, repeat(count))
        records: list[ShareRecord] = list(map(_new_record, fields))
        self._step(len(records))
        return records

    def take_batch(self, most: int) -> tuple[pa.RecordBatch, OffsetSpan]:
        """Returns the next records as of `take`, as Arrow columns, and their offsets."""
        from array import array

        import pyarrow as pa

        start, end, count = self._segments[self._at_segment]
        end = min(end, start + most)
        span = OffsetSpan(self._source.offset(start), self._source.offset(end - 1))
        batch = with_place(self._source.batch(start, end), self._at)
        counts = pa.Array.from_buffers(
            pa.int16(), end - start, [None, pa.py_buffer(array("h", [count]) * (end - start))]
        )
        self._step(end - start)
        fields = [*batch.schema, pa.field("delivery_count", pa.int16(), nullable=False)]
        return pa.RecordBatch.from_arrays([*batch.columns, counts], schema=pa.schema(fields)), span


def without_first_batch(acquired: AcquiredPiece) -> tuple[Sequence[AcquiredRange], AcquiredPiece | None]:
    """Returns what is acquired of a piece's first batch, and the piece without it."""
    piece, ranges = acquired.piece, acquired.ranges
    if len(piece.headers) < 2:
        return ranges, None
    end = piece.headers[0].next_offset
    rest = AcquiredPiece(piece.part(1), _within(ranges, end, piece.next_offset - 1))
    return _within(ranges, piece.offset, end - 1), rest


def _first_batch_corrupt(at: TopicPartition, acquired: AcquiredPiece, error: CorruptRecordError) -> SharedRecordError:
    first = acquired.piece.headers[0]
    found = corrupt_batch(at, error, first.base_offset, acquired.piece.data)
    return _rejected(at, OffsetSpan(first.base_offset, first.last_offset), found.reason)


def _rejected(at: TopicPartition, span: OffsetSpan, reason: str) -> SharedRecordError:
    return SharedRecordError(at, *span, f"{reason}; rejected, so that no member gets it again")


def _within(ranges: Iterable[AcquiredRange], first: int, last: int) -> list[AcquiredRange]:
    return [
        AcquiredRange(max(first, each.first), min(last, each.last), each.delivery_count)
        for each in ranges
        if each.first <= last and each.last >= first
    ]
