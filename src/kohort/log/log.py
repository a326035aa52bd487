"""A partition's log: append, read, retention, compaction."""

from __future__ import annotations

import struct
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kohort.log.compaction import CompactionPlan, plan_compaction, swap_in
from kohort.log.config import LogConfig
from kohort.log.damage import Report, tell
from kohort.log.expand import Expand, expand_now
from kohort.log.files import LOG, SNAPSHOT, file_name, make_directory
from kohort.log.local_log import LocalLog
from kohort.log.lookup import (
    aborted_between,
    batch_for_timestamp,
    latest_timestamp,
    offset_after,
    record_for_timestamp,
)
from kohort.log.losses import valid_in
from kohort.log.producer_state import EndTransactionMarker
from kohort.log.recovery import ended_transaction, load, new_log
from kohort.log.retention import Expired, deletable
from kohort.log.scan import ScannedBatch
from kohort.log.scrub import SegmentScrub
from kohort.log.segment import DamagedSegmentError, Segment
from kohort.log.segments import Segments
from kohort.log.slices import in_one_go
from kohort.log.transaction_markers import encode_marker
from kohort.log.types import Aborted, AppendInfo, Origin, TimestampedOffset
from kohort.log.validation import CheckedBatch, check_at_once, stamped
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, NO_SEQUENCE, NO_TIMESTAMP

_PREFIX: Final = struct.Struct(">qii")
"""The header before the part with a checksum: base offset, length, leader epoch."""

_MAX_SEQUENCE: Final = 2**31 - 1


class Log(LocalLog):
    """One partition on disk.

    It belongs to one thread; only `flush` and a compaction plan's `run` may be called in another at the same time.
    After an I/O error the log is `offline`: every operation raises KafkaError with KAFKA_STORAGE_ERROR until the log is
    opened again. Nothing is left of a batch that wasn't acknowledged.

    Attributes:
        directory: the partition's directory, named as in Kafka, "topic-partition".
        config: may be replaced at any time.
        log_start_offset, log_end_offset: of the first readable record, and of the next record to be appended.
        flushed_offset: everything before it is on the disk: the recovery point.
        cleaned_offset: everything before it has been compacted.
        durable: whether the high watermark waits for a flush.
        offline: why the log can't be used; None while it can.
        loaded: whether it was opened, and isn't closed yet.
        starved: whether that is for want of file descriptors alone.
    """

    @classmethod
    def open(
        cls,
        directory: Path,
        config: LogConfig,
        *,
        now: int,
        clean: bool,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        cleaned_offset: int = 0,
        durable: bool = False,
        contiguous: bool = False,
        report: Report = tell,
    ) -> Log:
        """Opens or creates a partition's directory.

        Args:
            directory, config, durable: as the attributes.
            now: ms since 1970.
            clean: whether the last shutdown was clean, so that no recovery is needed.
            recovery_point, log_start_offset, cleaned_offset: from the checkpoints (`DataDirectory`).
            contiguous: whether offsets that are lost are given to other records, instead of left out.
            report: hears what is lost or wrong, now and while the log is used.

        Returns:
            The log; an offline one if its files can't be read.
        """
        log = cls(directory, config, durable=durable)
        try:
            if make_directory(directory):
                loaded = new_log(directory, log_start_offset, now)
            else:
                loaded = load(
                    directory, config, now=now, clean=clean, recovery_point=recovery_point,
                    log_start_offset=log_start_offset, cleaned_offset=cleaned_offset, contiguous=contiguous,
                    report=report,
                )  # fmt: skip
        except (OSError, CorruptRecordError) as error:
            log._fail("opened", error)
            return log
        log.loaded = True
        log._segments = Segments(loaded.segments, report)
        log._producers, log._epochs = loaded.producers, loaded.epochs
        log._snapshot_offset = loaded.snapshot_offset
        log.log_start_offset, log.log_end_offset = loaded.log_start_offset, loaded.log_end_offset
        log.cleaned_offset = min(max(cleaned_offset, log.log_start_offset), log.log_end_offset)
        log.flushed_offset = log.log_end_offset if clean else min(recovery_point, log.log_end_offset)
        # If nothing was written before the log was closed, the files' names may not be on the disk.
        log._unsynced_names = not clean or not log._segments.active.size
        if durable and log.flushed_offset < log.log_end_offset:
            with suppress(KafkaError):  # the log is offline then
                log.flush()
        return log

    # Appending

    def append(
        self,
        records: Buffer | CheckedBatch,
        *,
        now: int,
        leader_epoch: int = 0,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Validates and appends one batch, without copying it.

        Args:
            records: the batch, with base offset 0; or one that is validated already.
            now: ms since 1970.
            leader_epoch: set in the batch.
            origin: whether a client or a coordinator made the batch.
            transaction_version: 2 if its transaction has an epoch of its own (Produce from version 12 on, KIP-890).

        Raises:
            KafkaError: as in Kafka: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE,
                RECORD_LIST_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE, OUT_OF_ORDER_SEQUENCE_NUMBER,
                INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE or KAFKA_STORAGE_ERROR.
        """
        if self.offline is not None:
            self._check()
        config = self.config
        checked = records if isinstance(records, CheckedBatch) else check_at_once(records, config, origin, now)
        data, header = checked
        delta = header.last_offset_delta
        last_sequence = NO_SEQUENCE
        if header.producer_id >= 0:
            if header.base_sequence >= 0:
                last_sequence = (header.base_sequence + delta) & _MAX_SEQUENCE
            client = origin is Origin.CLIENT
            if client and (past := self._producers.duplicate(header, last_sequence)) is not None:
                stamp = past.timestamp if config.log_append_time else NO_TIMESTAMP
                first = past.last_offset - past.offset_delta
                return AppendInfo(first, past.last_offset, stamp, self.log_start_offset, True)
            self._producers.check(header, sequenced=client, transaction_version=transaction_version)
        append_time, timestamp = NO_TIMESTAMP, header.max_timestamp
        base = self.log_end_offset
        prefix = _PREFIX.pack(base, header.batch_length, leader_epoch)
        buffers: tuple[bytes | memoryview, ...] = prefix, data[_PREFIX.size :]
        if config.log_append_time:
            append_time = timestamp = now
            buffers = prefix, stamped(data, header, now)[_PREFIX.size :], data[HEADER_SIZE:]
        self._write(buffers, header.batch_length + LENGTH_END, base + delta, timestamp, leader_epoch, now)
        if header.producer_id >= 0:
            self._producers.append_batch(header, base, last_sequence, timestamp)
        return AppendInfo(base, base + delta, append_time, self.log_start_offset)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int,
        now: int,
        leader_epoch: int = 0,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Appends the marker that ends a producer's transaction; also if there is none.

        Args:
            producer_id, producer_epoch: the producer; with transaction version 2 the epoch is its next one.
            commit: whether the transaction is committed, else aborted.
            coordinator_epoch: of the transaction coordinator; one older than the last marker's is fenced.
            now, leader_epoch: as in `append`.
            transaction_version: 2 for KIP-890's epoch bumps.

        Raises:
            KafkaError: INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED or KAFKA_STORAGE_ERROR.
        """
        self._check()
        self._producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        marker = EndTransactionMarker(commit, coordinator_epoch)
        batch = memoryview(encode_marker(producer_id, producer_epoch, marker, now))
        base = self.log_end_offset
        prefix = _PREFIX.pack(base, len(batch) - LENGTH_END, leader_epoch)
        self._write((prefix, batch[_PREFIX.size :]), len(batch), base, now, leader_epoch, now)
        first = self._producers.append_marker(producer_id, producer_epoch, marker, now)
        if first >= 0 and not commit:
            with self._storing("written to"):
                self._segments.active.aborted.append(ended_transaction(self._producers, producer_id, first, base))
        return AppendInfo(base, base, NO_TIMESTAMP, self.log_start_offset)

    def _write(
        self,
        buffers: tuple[bytes | memoryview, ...],
        size: int,
        last_offset: int,
        timestamp: int,
        leader_epoch: int,
        now: int,
    ) -> None:
        config = self.config
        if size > config.segment_bytes:
            reason = f"a batch of {size} bytes; segment.bytes is {config.segment_bytes}"
            raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, reason)
        try:
            if leader_epoch > self._epochs.latest:
                self._epochs.assign(leader_epoch, self.log_end_offset)
            segment = self._segments.active
            if segment.size:
                first = segment.first_timestamp
                age = timestamp - first if first >= 0 and timestamp >= 0 else now - segment.created
                if age > config.roll_ms or not segment.has_room(
                    size, last_offset, config.segment_bytes, config.segment_index_bytes
                ):
                    segment = self._roll(now)
            segment.append(buffers, size, last_offset, timestamp, config.index_interval_bytes)
        except OSError as error:
            raise self._fail("written to", error) from error
        self.log_end_offset = last_offset + 1
        if self._unflushed_since is None:
            self._unflushed_since = now

    def _roll(self, now: int) -> Segment:
        self._segments.active.seal()
        segment = Segment.new(self.directory, self.log_end_offset, now)
        with self._lock:
            self._unsynced_names = self._sealed_unflushed = True
            self._segments.add(segment)
        self._snapshot()
        return segment

    def roll_if_due(self, now: int) -> bool:
        """Rolls the active segment if it is older than `segment.ms`, so that it can be deleted or compacted.

        Kafka does this at the next append only.
        """
        self._check()
        segment = self._segments.active
        if not segment.size or now - segment.created <= self.config.roll_ms:
            return False
        with self._storing("rolled"):
            self._roll(now)
        return True

    # Reading

    def read(self, offset: int, max_bytes: int, *, up_to: int, min_one: bool = True) -> bytes:
        """Reads batches of one segment, from the one that contains `offset`.

        Args:
            offset: of the first requested record; its batch may start before it.
            max_bytes: where the last batch is truncated.
            up_to: reading ends before this offset: the high watermark or the last stable offset.
            min_one: whether a first batch larger than `max_bytes` is returned complete; otherwise nothing is.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE where a batch is damaged, or KAFKA_STORAGE_ERROR.
        """
        if self.offline is not None:
            self._check()
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            reason = f"offset {offset}; the log goes from {self.log_start_offset} to {end}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if offset >= up_to:
            return b""
        segments = self._segments
        try:
            for number in range(segments.number_of(offset), len(segments)):
                segment = segments[number]
                segments.mark_used(segment)
                limit = up_to if up_to < segments.end_of(number, end) else None
                data = segment.read(offset, max_bytes, limit, min_one)
                # Compaction may have removed all batches of the segment from there on.
                if data is not None:
                    return data
        except OSError as error:
            raise self._fail("read", error) from error
        except DamagedSegmentError as error:
            raise self._damaged(error) from error
        return b""

    def valid_batches(self) -> Iterator[ScannedBatch]:
        """Yields all valid batches, with their checksums checked; damages are reported and passed over.

        The log may be appended to and compacted in the meantime.

        Raises:
            KafkaError: KAFKA_STORAGE_ERROR.
        """
        self._check()
        offset = self.log_start_offset
        while offset < self.log_end_offset:
            with self._storing("read"):
                number = self._segments.number_of(offset)
                segment = self._segments[number]
                end = self._segments.end_of(number, self.log_end_offset)
                for found in valid_in(segment, end):
                    if found.header.next_offset > offset:
                        offset = found.header.next_offset
                        yield found
            offset = max(offset, end)

    def aborted_transactions(self, start: int, end: int, *, size: int | None = None) -> list[Aborted]:
        """Returns the aborted transactions that have records from offset `start` up to `end`, for a fetch.

        With `size`, the number of bytes that `read` returned from `start` on, `end` is reduced to about their end:
        otherwise a reader that is far behind would get all aborted transactions ahead of it each time.
        """
        self._check()
        segments = self._segments
        with self._storing("read"):
            if not any(segments[number].aborted.entries for number in range(segments.number_of(start), len(segments))):
                return []
            if size is not None:
                end = min(end, offset_after(segments, start, size, self.log_end_offset))
            found = aborted_between(segments, start, end)
        return [Aborted(entry.producer_id, entry.first_offset) for entry in found]

    def offset_for_timestamp(self, timestamp: int) -> TimestampedOffset | None:
        """Returns the first record that is as late as `timestamp` (ms since 1970), None if there is none."""
        return in_one_go(self.search_timestamp(timestamp))

    def search_timestamp(
        self, timestamp: int, start: int = 0, expand: Expand = expand_now
    ) -> Generator[Any, None, TimestampedOffset | None]:
        """Does the same from offset `start` on, and yields every so often; the log may change meanwhile."""
        start = max(start, self.log_start_offset)
        while True:
            self._check()
            with self._storing("read"):
                batch = batch_for_timestamp(self._segments, timestamp, start)
            if batch is None:
                return None
            found = yield from record_for_timestamp(batch, timestamp, start, expand)
            if found is not None:
                return found
            start = batch.header.next_offset
            yield

    def max_timestamp_offset(self) -> TimestampedOffset | None:
        """Returns the first record with the latest timestamp, None if no record has a timestamp."""
        return in_one_go(self.search_max_timestamp())

    def search_max_timestamp(self, expand: Expand = expand_now) -> Generator[Any, None, TimestampedOffset | None]:
        """Does the same, and yields every so often; the log may change meanwhile."""
        self._check()
        with self._storing("read"):
            latest = latest_timestamp(self._segments, self.log_start_offset)
        if latest is None:
            return None
        return (yield from self.search_timestamp(*latest, expand))

    # Retention and compaction

    def delete_records(self, before: int) -> int:
        """Advances the log start offset to `before`, and deletes the segments before it.

        Returns:
            The log start offset. Until it is in a checkpoint, a crash brings some of the records back.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE if `before` is over the high watermark.
        """
        self._check()
        if not 0 <= before <= self.high_watermark:
            reason = f"offset {before}; records can be deleted up to {self.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if before > self.log_start_offset:
            segments = self._segments
            self._advance_start(before, segments.number_of(before))
        return self.log_start_offset

    def enforce_retention(self, now: int) -> Expired:
        """Deletes segments by retention.ms and retention.bytes, and returns which; may roll the active one."""
        self._check()
        with self._storing("cleaned"):
            expired = deletable(self._segments, self.config, self.high_watermark, self.log_end_offset, now)
            if expired.number == len(self._segments):
                self._roll(now)
            # A crash may have left segments before the log start offset.
            number = max(expired.number, self._segments.number_of(self.log_start_offset))
        if number:
            self._advance_start(max(self.log_start_offset, self._segments[number].base_offset), number)
        return expired._replace(number=number)

    def _advance_start(self, offset: int, number: int) -> None:
        """Advances the log start offset, and deletes the first `number` segments."""
        self.log_start_offset = offset
        self.cleaned_offset = max(self.cleaned_offset, offset)
        with self._storing("cleaned"):
            with self._lock:
                old = self._segments.replace(0, number, [])
            # First: where an epoch starts before all segments, some are missing.
            self._epochs.truncate_start(offset)
            for segment in old:
                segment.delete()
                (self.directory / file_name(segment.base_offset, SNAPSHOT)).unlink(missing_ok=True)

    def plan_scrub(self) -> list[SegmentScrub]:
        """Lists the segments there are, to be scrubbed up to their present end; see `SegmentScrub`."""
        self._check()
        segments, end = self._segments, self.log_end_offset
        return [
            SegmentScrub(segment, segment.path(LOG), segment.size, segments.end_of(number, end))
            for number, segment in enumerate(segments)
            if segment.size
        ]

    def finish_scrub(self, scrub: SegmentScrub) -> None:
        """Reports what a scrub found, unless the segment isn't the log's any more, or its file was another's."""
        if self.offline is None and any(segment is scrub.segment for segment in self._segments):
            for gap in scrub.gaps:
                scrub.segment.note_gap(gap, scrub.end_offset)

    def plan_compaction(self, now: int) -> CompactionPlan | None:
        """Plans a compaction if one is due, by the dirty ratio and compaction lags; see `CompactionPlan`."""
        self._check()
        with self._storing("read"):
            return plan_compaction(
                self.directory, self._segments, self._producers, self.config, now=now,
                start=self.log_start_offset, cleaned=self.cleaned_offset, stable=self.last_stable_offset,
            )  # fmt: skip

    def finish_compaction(self, plan: CompactionPlan) -> bool:
        """Replaces the segments that `plan.run()` read by those it wrote; a crash leaves one or the other.

        Returns:
            Whether it was done: not if the plan hasn't completed, or a segment was deleted since.
        """
        self._check()
        with self._storing("compacted"), self._lock:
            done = swap_in(self.directory, self._segments, plan)
        if done:
            self.cleaned_offset = max(self.cleaned_offset, plan.cleaned_offset)
        return done
