"""Look-ups in a log: records by timestamp, and aborted transactions by offset."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from kohort.log.records import records_of
from kohort.log.scan import ScannedBatch
from kohort.log.segment import Segment
from kohort.log.segments import Segments
from kohort.log.transaction_index import AbortedTransaction
from kohort.log.types import TimestampedOffset
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.rows import payload_of


def offset_for_timestamp(segments: Segments, timestamp: int, start: int) -> TimestampedOffset | None:
    """Returns the first record from offset `start` on that is as late as `timestamp`."""
    for number in range(segments.number_of(start), len(segments)):
        segment = segments[number]
        if segment.max_timestamp >= timestamp:
            segments.mark_used(segment)
            found = _first_in(segment, timestamp, start)
            if found is not None:
                return found
    return None


def latest_timestamp(segments: Segments, start: int) -> TimestampedOffset | None:
    """Returns the first record with the latest timestamp."""
    latest = max(segments, key=lambda segment: segment.max_timestamp)
    if latest.max_timestamp < 0:
        return None
    segments.mark_used(latest)
    return _first_in(latest, latest.max_timestamp, start)


def _first_in(segment: Segment, timestamp: int, start: int) -> TimestampedOffset | None:
    before = segment.offset_before(timestamp)
    for batch in segment.batches(max(start, before)):
        if batch.header.max_timestamp >= timestamp and batch.header.record_count:
            found = _first_of(batch, timestamp, start)
            if found is not None:
                return found
    return None


def _first_of(batch: ScannedBatch, timestamp: int, start: int) -> TimestampedOffset | None:
    header = batch.header
    if header.log_append_time:
        return TimestampedOffset(max(header.base_offset, start), header.max_timestamp, header.partition_leader_epoch)
    try:
        for record in records_of(payload_of(batch.data, header), header):
            at, when = header.base_offset + record.offset_delta, header.base_timestamp + record.timestamp_delta
            if when >= timestamp and at >= start:
                return TimestampedOffset(at, when, header.partition_leader_epoch)
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
