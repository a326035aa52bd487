"""Look-ups in a log: records by timestamp, and aborted transactions by offset."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator
from operator import attrgetter
from typing import Any, Final

from kohort.log.expand import Expand
from kohort.log.records import records_of
from kohort.log.scan import ScannedBatch
from kohort.log.segments import Segments
from kohort.log.transaction_index import AbortedTransaction
from kohort.log.types import TimestampedOffset
from kohort.protocol.errors import CorruptRecordError

RECORDS_A_SLICE: Final = 500


def batch_for_timestamp(segments: Segments, timestamp: int, start: int) -> ScannedBatch | None:
    """Returns the first batch with offsets from `start` on that may have a record as late as `timestamp`."""
    for number in range(segments.number_of(start), len(segments)):
        segment = segments[number]
        if segment.max_timestamp >= timestamp:
            segments.mark_used(segment)
            before = segment.offset_before(timestamp)
            for batch in segment.batches(max(start, before)):
                header = batch.header
                if header.max_timestamp >= timestamp and header.record_count and header.next_offset > start:
                    return batch
    return None


def latest_timestamp(segments: Segments, start: int) -> tuple[int, int] | None:
    """Returns the latest timestamp of all records, and the offset from which on to look for it; None without one."""
    latest = max(segments, key=lambda segment: segment.max_timestamp)
    return None if latest.max_timestamp < 0 else (latest.max_timestamp, max(latest.base_offset, start))


def record_for_timestamp(
    batch: ScannedBatch, timestamp: int, start: int, expand: Expand
) -> Generator[Any, None, TimestampedOffset | None]:
    """Returns the first record of a batch, from offset `start` on, that is as late as `timestamp`.

    Yields every so often: what is read here is the batch in memory, whatever becomes of the log meanwhile.
    """
    header = batch.header
    if header.log_append_time:
        return TimestampedOffset(max(header.base_offset, start), header.max_timestamp, header.partition_leader_epoch)
    try:
        payload = yield from expand(memoryview(batch.data), header)
        for number, record in enumerate(records_of(payload, header)):
            at, when = header.base_offset + record.offset_delta, header.base_timestamp + record.timestamp_delta
            if when >= timestamp and at >= start:
                return TimestampedOffset(at, when, header.partition_leader_epoch)
            if number % RECORDS_A_SLICE == 0:
                yield
    except CorruptRecordError:
        # The records are unreadable; the first one may be as late.
        return TimestampedOffset(max(header.base_offset, start), header.max_timestamp, header.partition_leader_epoch)
    return None


def offset_after(segments: Segments, start: int, size: int, log_end: int) -> int:
    """Returns an offset after `size` bytes read from `start` on: the next one in the index, or the segment's end."""
    for number in range(segments.number_of(start), len(segments)):
        segment = segments[number]
        first = segment.locate(start)
        if first is not None:
            return segment.offset_after(first.position + size) or segments.end_of(number, log_end)
    return log_end


_last_offset = attrgetter("last_offset")


def aborted_between(segments: Segments, start: int, end: int) -> list[AbortedTransaction]:
    found = []
    for number in range(segments.number_of(start), len(segments)):
        entries = segments[number].aborted.entries
        for place in range(bisect_left(entries, start, key=_last_offset), len(entries)):
            entry = entries[place]
            if entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found
    return found
