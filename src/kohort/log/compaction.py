"""Log compaction: the latest record of each key is retained.

It has three steps, so that the slow one can run in a thread: `plan_compaction` selects segments, `CompactionPlan.run`
reads them and writes new segments beside them, and `swap_in` replaces the old with the new. Offsets never change, and
neither do the producer fields of batches.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from kohort.log.cleaner import Cleaner, LastRecord, OffsetMap
from kohort.log.config import LogConfig
from kohort.log.damage import repair_command
from kohort.log.files import CLEANED, LOG, SNAPSHOT, SWAP, file_name, fsync_directory
from kohort.log.lookup import aborted_between
from kohort.log.producer_state import ProducerStates
from kohort.log.scan import ScannedBatch, scan
from kohort.log.segment import Segment
from kohort.log.segments import Segments
from kohort.log.transaction_index import AbortedTransaction
from kohort.protocol.errors import CorruptRecordError

_log: Final = logging.getLogger("kohort.log")

_MAX_RELATIVE: Final = 2**31 - 1


class _CancelledError(Exception):
    """The compaction was cancelled."""


class _Source(NamedTuple):
    """A segment to be compacted: its offsets, size, and the size of its larger index, in bytes."""

    base_offset: int
    end_offset: int
    size: int
    index_size: int
    path: Path


@dataclass
class CompactionPlan:
    """A compaction of a log.

    Attributes:
        dirty_ratio: share of bytes that were never compacted, from 0 to 1.
        cleaned_offset: where the next compaction starts once this one has run.
        cancelled: set it, from any thread, to end a run soon without changes.
        bytes_before, bytes_after: size of the segments that it read, and of those that it wrote.
    """

    directory: Path
    config: LogConfig
    now: int
    dirty_ratio: float
    dirty_from: int
    until: int
    sources: list[_Source]
    aborted: list[AbortedTransaction]
    last_records: dict[int, LastRecord]
    cleaned_offset: int
    cancelled: bool = False
    done: bool = False
    bytes_before: int = 0
    bytes_after: int = 0
    made: list[tuple[list[_Source], Segment]] = field(default_factory=list)

    def run(self) -> bool:
        """Reads the segments, and writes what is retained. Runs in any thread.

        Returns:
            Whether it completed. If not, nothing has changed, and the reason is logged unless it was cancelled.
        """
        try:
            keys = self._map_keys()
            self.cleaned_offset = keys.end
            cleaner = Cleaner(keys, self.config, self.now, self.aborted, self.last_records, self.until)
            for group in self._groups(keys.end):
                self._clean(group, cleaner)
        except _CancelledError:
            self.discard()
            return False
        except CorruptRecordError as error:
            self.discard()
            mend = repair_command(self.directory)
            _log.warning(
                "%s: can't be compacted: %s; it is unchanged. To mend it, stop the server and run: %s",
                self.directory, error, mend,
            )  # fmt: skip
            return False
        except OSError as error:
            self.discard()
            _log.warning("%s: can't be compacted: %s; it is unchanged", self.directory, error)
            return False
        self.done = True
        return True

    def discard(self) -> None:
        """Deletes the segments that were written."""
        self.done = False
        for _, segment in self.made:
            segment.delete()
        self.made.clear()

    def _map_keys(self) -> OffsetMap:
        keys = OffsetMap(self.dirty_from, self.until, self.aborted)
        for source in self.sources:
            if source.end_offset > self.dirty_from:
                for batch in self._batches(source):
                    if batch.header.last_offset >= self.dirty_from and not keys.add(batch):
                        return keys
        return keys

    def _batches(self, source: _Source, *, check: bool = False) -> Iterator[ScannedBatch]:
        fd = os.open(source.path, os.O_RDONLY)
        try:
            for batch in scan(fd, 0, source.size, check=check):
                if self.cancelled:
                    raise _CancelledError
                yield batch
        finally:
            os.close(fd)

    def _groups(self, end: int) -> Iterator[list[_Source]]:
        """Groups neighbouring segments that fit into one."""
        group: list[_Source] = []
        for source in self.sources:
            if source.base_offset >= end:
                break
            joined = [*group, source]
            if group and (
                sum(one.size for one in joined) > self.config.segment_bytes
                or sum(one.index_size for one in joined) > self.config.segment_index_bytes
                or source.end_offset - group[0].base_offset > _MAX_RELATIVE
            ):
                yield group
                group = [source]
            else:
                group = joined
        if group:
            yield group

    def _clean(self, group: list[_Source], cleaner: Cleaner) -> None:
        segment = Segment.new(self.directory, group[0].base_offset, self.now, CLEANED)
        self.made.append((group, segment))
        cleaner.aborted_index = segment.aborted
        for source in group:
            # What is written gets a new checksum: that must not make a damaged record a valid one.
            for batch in self._batches(source, check=True):
                kept = cleaner.clean(batch)
                if kept is not None:
                    data, header = kept
                    segment.append(
                        (data,), len(data), header.last_offset, header.max_timestamp, self.config.index_interval_bytes
                    )
        segment.seal()
        segment.sync()
        segment.release()
        # Without timestamps in records, retention uses the file's time.
        stat = group[-1].path.stat()
        os.utime(segment.path(LOG), ns=(stat.st_atime_ns, stat.st_mtime_ns))
        self.bytes_before += sum(source.size for source in group)
        self.bytes_after += segment.size


def plan_compaction(
    directory: Path,
    segments: Segments,
    producers: ProducerStates,
    config: LogConfig,
    *,
    now: int,
    start: int,
    cleaned: int,
    stable: int,
) -> CompactionPlan | None:
    """Plans the compaction of a log by its dirty ratio and compaction lags; None if it isn't due.

    Args:
        directory, segments, producers, config: the log's.
        now: ms since 1970.
        start, cleaned, stable: log start offset, end of the last compaction, last stable offset.
    """
    if not config.compact:
        return None
    sources = []
    clean_bytes = dirty_bytes = 0
    overdue = False
    for number, segment in enumerate(segments):
        end = segments.end_of(number, stable)
        if segment is segments.active or end > stable:
            break
        dirty = end > cleaned
        if (
            dirty
            and config.min_compaction_lag_ms > 0
            and segment.retention_timestamp > now - config.min_compaction_lag_ms
        ):
            break
        if dirty:
            dirty_bytes += segment.size
            overdue = overdue or now - segment.retention_timestamp > config.max_compaction_lag_ms
        else:
            clean_bytes += segment.size
        index_size = max(8 * len(segment.index), 12 * len(segment.time_index))
        segments.mark_used(segment)
        sources.append(_Source(segment.base_offset, end, segment.size, index_size, segment.path(LOG)))
    if not dirty_bytes:
        return None
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    if not overdue and ratio <= config.min_cleanable_dirty_ratio:
        return None
    until = sources[-1].end_offset
    last_records = {
        producer.producer_id: LastRecord(producer.last_offset, producer.epoch) for producer in producers.by_id.values()
    }
    aborted = aborted_between(segments, sources[0].base_offset, until)
    return CompactionPlan(
        directory, config, now, ratio, max(cleaned, start), until, sources, aborted, last_records, cleaned
    )


def swap_in(directory: Path, segments: Segments, plan: CompactionPlan) -> bool:
    """Replaces the segments that a plan has read by those it has written.

    First these are renamed from `.cleaned` to `.swap`: from then on, recovery after a crash puts them in place.

    Raises:
        OSError: a file can't be renamed or removed.
    """
    if not plan.done:
        return False
    places = {segment.base_offset: (number, segment) for number, segment in enumerate(segments)}
    for group, _ in plan.made:
        for source in group:
            number, segment = places.get(source.base_offset, (-1, None))
            if segment is None or segment.size != source.size or segments.end_of(number, -1) != source.end_offset:
                plan.discard()
                return False
    for _, made in plan.made:
        made.rename(SWAP)
    fsync_directory(directory)
    for group, made in plan.made:
        first = segments.number_of(made.base_offset)
        for segment in segments.replace(first, first + len(group), [made]):
            segment.delete()
        for source in group[1:]:
            (directory / file_name(source.base_offset, SNAPSHOT)).unlink(missing_ok=True)
        made.rename("")
    fsync_directory(directory)
    plan.made.clear()
    return True
