"""A partition's log: batches in segments, appended at the end and read from any offset."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import Final

from kohort.log.compaction import CompactionPlan, plan_compaction, swap_in
from kohort.log.config import LogConfig
from kohort.log.files import SNAPSHOT, file_name, make_directory
from kohort.log.local_log import LocalLog
from kohort.log.lookup import aborted_between, latest_timestamp, offset_after, offset_for_timestamp
from kohort.log.producer_state import EndTransactionMarker
from kohort.log.recovery import ended_transaction, fresh, load
from kohort.log.retention import deletable
from kohort.log.segment import Segment
from kohort.log.segments import Segments
from kohort.log.transaction_markers import encode_marker
from kohort.log.types import Aborted, AppendInfo, Origin, TimestampedOffset
from kohort.log.validation import check_batch, recompressed, stamped
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import HEADER_SIZE, LENGTH_END, NO_SEQUENCE, NO_TIMESTAMP, read_header

__all__ = ["Log"]

_PREFIX: Final = struct.Struct(">qii")
"""Of a batch's header, before the part that the checksum covers: base offset, length, leader epoch."""

_MAX_SEQUENCE: Final = 2**31 - 1


class Log(LocalLog):
    """One partition on disk.

    It belongs to one thread; only `flush` and the `run` of a compaction plan may be called from another meanwhile.
    Every operation raises KafkaError with KAFKA_STORAGE_ERROR once the disk has failed it: the log is `offline` then,
    nothing of a batch that wasn't acknowledged is left in it, and it stays so until it is opened again.

    Attributes:
        directory: where it is; its name is Kafka's, "topic-partition".
        config: may be replaced at any time.
        log_start_offset, log_end_offset: of the first record that may be read, and the one that comes next.
        flushed_offset: what is before it is on the disk for sure: where recovery begins after a crash.
        cleaned_offset: what is before it has been compacted.
        durable: whether records may be read only when they are on the disk.
        offline: why the log can't be used; None while it can.
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
    ) -> Log:
        """Open a partition's directory, which is created if it isn't there.

        Args:
            directory, config, durable: as the attributes.
            now: ms since 1970.
            clean: whether it was closed cleanly, so that nothing needs to be checked.
            recovery_point, log_start_offset, cleaned_offset: from the checkpoints (`DataDirectory`).

        Returns:
            The log; if its files can't be read, an offline one.
        """
        log = cls(directory, config, durable=durable)
        try:
            if make_directory(directory):
                loaded = fresh(directory, log_start_offset, now)
            else:
                loaded = load(
                    directory, config, now=now, clean=clean, recovery_point=recovery_point,
                    log_start_offset=log_start_offset,
                )  # fmt: skip
        except (OSError, CorruptRecordError) as error:
            log._fail("opened", error)
            return log
        log._loaded = True
        log._segments = Segments(loaded.segments)
        log._producers, log._epochs = loaded.producers, loaded.epochs
        log._snapshot_offset = loaded.snapshot_offset
        log.log_start_offset, log.log_end_offset = loaded.log_start_offset, loaded.log_end_offset
        log.cleaned_offset = min(max(cleaned_offset, log.log_start_offset), log.log_end_offset)
        log.flushed_offset = log.log_end_offset if clean else min(recovery_point, log.log_end_offset)
        # Where nothing was written and the log closed, the files' names may never have got to the disk.
        log._unsynced_names = not clean or not log._segments.active.size
        if durable and log.flushed_offset < log.log_end_offset:
            with suppress(KafkaError):  # it is offline then
                log.flush()
        return log

    # Writing.

    def append(
        self,
        records: Buffer,
        *,
        now: int,
        leader_epoch: int = 0,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> AppendInfo:
        """Append one batch; it is checked before anything is written, and written from where it lies.

        Args:
            records: the batch, with base offset 0.
            now: ms since 1970.
            leader_epoch: written into it.
            origin: who made it.
            transaction_version: 2 if its transaction has an epoch of its own (Produce from version 12 on, KIP-890).

        Raises:
            KafkaError: what Kafka answers: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP, MESSAGE_TOO_LARGE,
                RECORD_LIST_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE, OUT_OF_ORDER_SEQUENCE_NUMBER,
                INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE or KAFKA_STORAGE_ERROR.
        """
        if self.offline is not None:
            self._check()
        config = self.config
        data = memoryview(records)
        header = check_batch(data, config, origin, now)
        codec = config.codec
        if codec is not None and header.attributes & 0x07 != codec:
            data = recompressed(data, header, config, codec)
            header = read_header(data)
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
            self._producers.wrote(header, base, last_sequence, timestamp)
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
        """End a producer's transaction here; without one the marker is written all the same.

        Args:
            producer_id, producer_epoch: whose; with transaction version 2 the epoch is the one that comes next.
            commit: whether the transaction is committed, else aborted.
            coordinator_epoch: of the transaction coordinator; an older one than before is fenced.
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
        first = self._producers.ended(producer_id, producer_epoch, marker, now)
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
                begun = segment.first_timestamp
                waited = timestamp - begun if begun >= 0 and timestamp >= 0 else now - segment.created
                if waited > config.roll_ms or not segment.has_room(
                    size, last_offset, config.segment_bytes, config.segment_index_bytes
                ):
                    segment = self._roll(now)
            segment.append(buffers, size, last_offset, timestamp, config.index_interval_bytes)
        except OSError as error:
            raise self._fail("written to", error) from error
        self.log_end_offset = last_offset + 1
        if self._dirty_since is None:
            self._dirty_since = now

    def _roll(self, now: int) -> Segment:
        self._segments.active.seal()
        segment = Segment.create(self.directory, self.log_end_offset, now)
        with self._lock:
            self._unsynced_names = self._sealed_dirty = True
            self._segments.add(segment)
        self._snapshot()
        return segment

    def roll_if_due(self, now: int) -> bool:
        """Roll the active segment if it is older than `segment.ms`, so that it can be deleted or compacted.

        Kafka does this on the next append only.
        """
        self._check()
        segment = self._segments.active
        if not segment.size or now - segment.created <= self.config.roll_ms:
            return False
        with self._storing("rolled"):
            self._roll(now)
        return True

    # Reading.

    def read(self, offset: int, max_bytes: int, *, up_to: int, min_one: bool = True) -> bytes:
        """Batches as they lie in one segment, from the one that holds `offset`.

        Args:
            offset: of the first record wanted; the batch may begin before it.
            max_bytes: where the last batch is cut off.
            up_to: no batch begins here or later: the high watermark or the last stable offset.
            min_one: whether the first batch comes whole even if it is larger than `max_bytes`; else there is none.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE or KAFKA_STORAGE_ERROR.
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
                segments.using(segment)
                limit = up_to if up_to < segments.end_of(number, end) else None
                data = segment.read(offset, max_bytes, limit, min_one)
                # Compaction may have left nothing in a segment from there on.
                if data is not None:
                    return data
        except OSError as error:
            raise self._fail("read", error) from error
        return b""

    def aborted_transactions(self, start: int, end: int, *, size: int | None = None) -> list[Aborted]:
        """The aborted transactions that have records from offset `start` up to `end`, as a fetch gives them.

        With `size`, the number of bytes that `read` gave from `start` on, `end` comes down to about where those end:
        so a reader that is far behind isn't told of all that is before it each time.
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
        """The first record that is as late as `timestamp` (ms since 1970), None if there is none."""
        self._check()
        with self._storing("read"):
            return offset_for_timestamp(self._segments, timestamp, self.log_start_offset)

    def max_timestamp_offset(self) -> TimestampedOffset | None:
        """The first record with the latest timestamp of all, None if none has a timestamp."""
        self._check()
        with self._storing("read"):
            return latest_timestamp(self._segments, self.log_start_offset)

    # Keeping it small.

    def delete_records(self, before: int) -> int:
        """Let the log begin at offset `before`, and delete the segments that are wholly before it.

        Returns:
            The log start offset; write it to the checkpoint, or a crash brings some of the records back.

        Raises:
            KafkaError: OFFSET_OUT_OF_RANGE if `before` is over the high watermark.
        """
        self._check()
        if not 0 <= before <= self.high_watermark:
            reason = f"offset {before}; records can be deleted up to {self.high_watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if before > self.log_start_offset:
            segments = self._segments
            self._start_at(before, segments.number_of(before))
        return self.log_start_offset

    def enforce_retention(self, now: int) -> int:
        """Delete the segments that time and size say, and return how many; an active one that is due is rolled."""
        self._check()
        with self._storing("cleaned"):
            number = deletable(self._segments, self.config, self.high_watermark, self.log_end_offset, now)
            if number == len(self._segments):
                self._roll(now)
            # A crash may have left what was before the log's start.
            number = max(number, self._segments.number_of(self.log_start_offset))
        if number:
            self._start_at(max(self.log_start_offset, self._segments[number].base_offset), number)
        return number

    def _start_at(self, offset: int, number: int) -> None:
        """Begin at an offset, without the first `number` segments."""
        self.log_start_offset = offset
        self.cleaned_offset = max(self.cleaned_offset, offset)
        with self._storing("cleaned"):
            with self._lock:
                old = self._segments.replace(0, number, [])
            for segment in old:
                segment.delete()
                (self.directory / file_name(segment.base_offset, SNAPSHOT)).unlink(missing_ok=True)
            self._epochs.truncate_start(offset)

    def plan_compaction(self, now: int) -> CompactionPlan | None:
        """What there is to compact, if it is worth it by the dirty ratio and the lags; see `CompactionPlan`."""
        self._check()
        with self._storing("read"):
            return plan_compaction(
                self.directory, self._segments, self._producers, self.config, now=now,
                start=self.log_start_offset, cleaned=self.cleaned_offset, stable=self.last_stable_offset,
            )  # fmt: skip

    def finish_compaction(self, plan: CompactionPlan) -> bool:
        """Put what `plan.run()` wrote in the place of what it read, so that a crash leaves one or the other.

        Returns:
            Whether that was done; not so if the plan hasn't run to its end, or a segment has been deleted since.
        """
        self._check()
        with self._storing("compacted"), self._lock:
            done = swap_in(self.directory, self._segments, plan)
        if done:
            self.cleaned_offset = max(self.cleaned_offset, plan.cleaned_offset)
        return done
