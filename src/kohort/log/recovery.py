"""Opens a log's directory, and recovers it after a crash.

After a clean shutdown only the ends of the segments are read. Otherwise every segment from the recovery point on is
validated: the log is truncated at the first incomplete or invalid batch, and indexes, leader epochs and producer state
are rebuilt from the rest. An interrupted compaction is completed or undone.

Whatever is lost is reported. Whole batches after a damage are set aside (`aside`), and the log goes on after them:
their offsets aren't given to other records.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from kohort.log.config import LogConfig
from kohort.log.damage import Range, Report, tell
from kohort.log.files import (
    CLEANED,
    DELETED,
    EPOCHS,
    INDEX,
    LOG,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    file_name,
    fsync_directory,
    offset_of,
    read_exactly,
)  # fmt: skip
from kohort.log.leader_epochs import LeaderEpochs
from kohort.log.losses import Losses, valid_in
from kohort.log.producer_snapshot import load_snapshot
from kohort.log.producer_state import ProducerStates
from kohort.log.salvage import Gap, batches_and_gaps
from kohort.log.scan import ScannedBatch, scan
from kohort.log.segment import DamagedSegmentError, Segment
from kohort.log.transaction_index import AbortedTransaction
from kohort.log.transaction_markers import read_marker
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import HEADER_SIZE, NO_SEQUENCE, next_sequence, read_header

_log: Final = logging.getLogger("kohort.log")

_INDEXES: Final = (INDEX, TIME_INDEX)


@dataclass
class Loaded:
    """The state of an opened log.

    Attributes:
        segments: at least one, in order.
        producers, epochs: at the log end offset.
        log_start_offset, log_end_offset: of the first record, and after the last.
        snapshot_offset: of the producer snapshot that was loaded, -1 without one.
    """

    segments: list[Segment]
    producers: ProducerStates
    epochs: LeaderEpochs
    log_start_offset: int
    log_end_offset: int
    snapshot_offset: int


def load(
    directory: Path,
    config: LogConfig,
    *,
    now: int,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    cleaned_offset: int = 0,
    contiguous: bool = False,
    report: Report = tell,
) -> Loaded:
    """Loads a log; an empty directory becomes a log that starts at `log_start_offset`.

    Args:
        contiguous: whether the log goes on where it ends, whatever is lost.

    Raises:
        OSError: a file can't be read, truncated or set aside.
        CorruptRecordError: a batch before the recovery point is damaged, and needed.
    """
    names = finish_swaps(directory)
    snapshots = sorted(offset for name in names if name.endswith(SNAPSHOT) and (offset := offset_of(name)) is not None)
    bases = sorted(offset for name in names if name.endswith(LOG) and (offset := offset_of(name)) is not None)
    losses = Losses(directory, report)
    if not bases:
        end = log_start_offset if contiguous else max(log_start_offset, recovery_point)
        losses.missing(Range(log_start_offset, max(end, recovery_point)), "the directory has no segments")
        return _emptied(directory, snapshots, end, now)
    _remove_orphans(directory, names, set(bases))
    epochs = LeaderEpochs(directory)
    if EPOCHS in names:
        epochs.load()
    segments = [Segment(directory, base, (directory / file_name(base, LOG)).stat().st_size, now) for base in bases]
    for segment in segments:
        segment.report = report
    if epochs.starts:
        first = max(log_start_offset, epochs.starts[0][1])
        losses.missing(Range(first, bases[0]), f"the segments before {file_name(bases[0], LOG)} are missing")
    to_recover = _first_to_recover(segments, names, clean, recovery_point)
    log_end = _clean_end(segments[-1]) if to_recover == len(segments) else None
    if log_end is None:
        to_recover = min(to_recover, len(segments) - 1)
    sealed = pairwise(segments[: to_recover + 1])
    ends = [_sealed_end(segment, following.base_offset, losses) for segment, following in sealed]
    producers = ProducerStates()
    start = segments[to_recover].base_offset if log_end is None else log_end
    snapshot = load_snapshot(directory, [offset for offset in snapshots if offset <= start], producers)
    _replay(segments, producers, snapshot or 0, start)
    if log_end is None:
        more, log_end = _recover(segments, to_recover, producers, epochs, config, losses, recovery_point)
        ends += more
    for end, following in zip(ends, segments[1:], strict=False):
        if not config.compact and following.base_offset > cleaned_offset:
            losses.missing(
                Range(end, following.base_offset),
                f"a segment is missing before {file_name(following.base_offset, LOG)}",
            )
    end = max(log_end, losses.end)
    if recovery_point > end:
        losses.missing(Range(end, recovery_point), "the log ends before these, though they were on the disk")
        end = recovery_point
    if end > log_end and not contiguous:
        segments[-1].seal()
        segments[-1].release()
        segments.append(Segment.new(directory, end, now))
        log_end = end
    if log_end < log_start_offset:
        _log.warning("%s: ends at %d, before its log start offset %d: emptied", directory, log_end, log_start_offset)
        for segment in segments:
            segment.delete()
        return _emptied(directory, snapshots, log_start_offset, now)
    needed = {snapshot, *(segment.base_offset for segment in segments)}
    for offset in snapshots:
        if offset > log_end or offset not in needed:
            (directory / file_name(offset, SNAPSHOT)).unlink(missing_ok=True)
    producers.expire(now, config.producer_id_expiration_ms)
    log_start = max(log_start_offset, bases[0])
    epochs.truncate_end(log_end)
    epochs.truncate_start(log_start)
    return Loaded(segments, producers, epochs, log_start, log_end, -1 if snapshot is None else snapshot)


def ended_transaction(
    producers: ProducerStates, producer_id: int, first_offset: int, marker_at: int
) -> AbortedTransaction:
    """Returns the index entry of an aborted transaction whose marker `producers` has applied."""
    stable = next(iter(producers.ongoing.values()), marker_at + 1)
    return AbortedTransaction(producer_id, first_offset, marker_at, stable)


def new_log(directory: Path, offset: int, now: int) -> Loaded:
    """Creates an empty log that starts at `offset`, in an empty directory."""
    return Loaded([Segment.new(directory, offset, now)], ProducerStates(), LeaderEpochs(directory), offset, offset, -1)


def _emptied(directory: Path, snapshots: list[int], offset: int, now: int) -> Loaded:
    for stray in snapshots:
        (directory / file_name(stray, SNAPSHOT)).unlink(missing_ok=True)
    (directory / EPOCHS).unlink(missing_ok=True)
    return new_log(directory, offset, now)


def _first_to_recover(segments: list[Segment], names: set[str], clean: bool, recovery_point: int) -> int:
    for number, segment in enumerate(segments):
        # An empty segment needs no indexes.
        indexed = not segment.size or names.issuperset(file_name(segment.base_offset, kind) for kind in _INDEXES)
        last = number + 1 == len(segments)
        if not indexed or (not clean and (last or recovery_point < segments[number + 1].base_offset)):
            return number
    return len(segments)


def _clean_end(segment: Segment) -> int | None:
    """Returns the offset after the last batch; None if the end is damaged in spite of the clean shutdown."""
    try:
        if segment.size >= HEADER_SIZE:
            segment.first_timestamp = read_header(read_exactly(segment.fd, HEADER_SIZE, 0)).max_timestamp
        return segment.end_offset()
    except DamagedSegmentError as error:
        _log.warning("%s: was closed cleanly, but doesn't end with a batch: %s", segment.path(LOG), error)
        return None


def _sealed_end(segment: Segment, following: int, losses: Losses) -> int:
    """Returns the offset after the last batch of a sealed segment; one that doesn't end with a batch is cut."""
    try:
        end = segment.end_offset()
        return end if end <= following else _cut(segment, following, losses)
    except DamagedSegmentError:
        return _cut(segment, following, losses)
    finally:
        segment.release()


def _cut(segment: Segment, following: int, losses: Losses) -> int:
    """Cuts a sealed segment off before its first damage; returns the offset after the batches that are left.

    The segment after it begins at offset `following`.

    Its transaction index stays: that knows of transactions that began in other segments.
    """
    end, valid = segment.base_offset, 0
    try:
        for batch in scan(segment.fd, 0, segment.size, check=True, base_offset=end, limit=following):
            end, valid = batch.header.next_offset, valid + batch.header.size
    except CorruptRecordError as error:
        losses.truncate([segment], valid, end, error.reason, following, following)
        segment.make_indexes()
    return end


def _replay(segments: list[Segment], producers: ProducerStates, start: int, end: int) -> None:
    """Applies the batches from offset `start` up to `end` to the producer state."""
    for number, segment in enumerate(segments):
        if max(segment.base_offset, start) >= end:
            break
        if number + 1 < len(segments) and segments[number + 1].base_offset <= start:
            continue
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end
        for batch in valid_in(segment, following, start):
            if batch.header.base_offset >= start:
                _apply(producers, batch)
        if number + 1 < len(segments):
            segment.release()


def _apply(producers: ProducerStates, batch: ScannedBatch) -> AbortedTransaction | None:
    """Applies a batch to the producer state; returns the transaction that it aborts."""
    header = batch.header
    if header.producer_id < 0:
        return None
    if not header.control:
        sequence = header.base_sequence
        last = next_sequence(sequence, header.last_offset_delta) if sequence >= 0 else NO_SEQUENCE
        producers.append_batch(header, header.base_offset, last, header.max_timestamp)
        return None
    marker = read_marker(batch.data, header)
    if marker is None:
        return None
    first = producers.append_marker(header.producer_id, header.producer_epoch, marker, header.max_timestamp)
    if marker.commit or first < 0:
        return None
    return ended_transaction(producers, header.producer_id, first, header.base_offset)


def _recover(
    segments: list[Segment],
    first: int,
    producers: ProducerStates,
    epochs: LeaderEpochs,
    config: LogConfig,
    losses: Losses,
    recovery_point: int,
) -> tuple[list[int], int]:
    """Validates and reindexes the segments from number `first` on; truncates the log at the first invalid batch.

    Returns the offsets after the last valid batch of each segment, and after that of the last one.
    """
    ends = []
    for number in range(first, len(segments)):
        segment = segments[number]
        limit = segment.base_offset + 2**31
        if number + 1 < len(segments):
            limit = min(limit, segments[number + 1].base_offset)
        end, valid, error = _recover_segment(segment, limit, producers, epochs, config)
        ends.append(end)
        if error is not None:
            losses.truncate(segments[number:], valid, end, error.reason, recovery_point)
            for later in segments[number + 1 :]:
                later.delete()
            del segments[number + 1 :]
        if number + 1 < len(segments):
            segment.seal()
            segment.release()
        else:
            break
    return ends, ends[-1]


def _recover_segment(
    segment: Segment, limit: int, producers: ProducerStates, epochs: LeaderEpochs, config: LogConfig
) -> tuple[int, int, CorruptRecordError | None]:
    """Validates and reindexes one segment, whose offsets are below `limit`.

    Returns the offset and position after its last valid batch, and what is wrong there; None where the segment ends.
    """
    size, end, valid = segment.size, segment.base_offset, 0
    segment.reset_indexes()
    try:
        for batch in scan(segment.fd, 0, size, check=True, base_offset=end, limit=limit):
            header = batch.header
            aborted = _apply(producers, batch)
            if not valid:
                segment.first_timestamp = header.max_timestamp
            segment.index_batch(
                valid, header.size, header.last_offset, header.max_timestamp, config.index_interval_bytes
            )
            if aborted is not None:
                segment.aborted.append(aborted)
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
            end, valid = header.next_offset, valid + header.size
    except CorruptRecordError as error:
        return end, valid, error
    return end, valid, None


def finish_swaps(directory: Path) -> set[str]:
    """Completes or undoes a compaction that a crash interrupted, as Kafka does.

    `.cleaned` files were being written, and are deleted. Once the last of a segment's files, its log, is named `.swap`,
    it replaces the segments it was made from.
    """
    names = _names(directory)
    if not any(name.endswith((CLEANED, SWAP, DELETED, ".tmp")) for name in names):
        return names
    unfinished = {offset_of(name) for name in names if name.endswith(CLEANED)}
    for name in names:
        half_renamed = name.endswith(SWAP) and offset_of(name) in unfinished
        if half_renamed or name.endswith((CLEANED, DELETED, ".tmp")):
            (directory / name).unlink(missing_ok=True)
    swaps = [name for name in _names(directory) if name.endswith(SWAP)]
    for name in swaps:
        if name.endswith(LOG + SWAP):
            _remove_replaced(directory, name)
    swaps = [name for name in swaps if (directory / name).exists()]
    for name in sorted(swaps, key=lambda name: name.endswith(LOG + SWAP)):
        (directory / name).replace(directory / name.removesuffix(SWAP))
    fsync_directory(directory)
    return _names(directory)


def _remove_replaced(directory: Path, swap: str) -> None:
    """Deletes the segments that a compacted one replaces: those whose base offset is in it.

    They are deleted from the first on. If the compacted one is damaged, and the first is there, it is given up instead.
    """
    base = offset_of(swap)
    assert base is not None
    fd = os.open(directory / swap, os.O_RDONLY)
    end = base
    try:
        for found in batches_and_gaps(fd, 0, os.fstat(fd).st_size, base_offset=base, least=base):
            if not isinstance(found, Gap):
                end = found.header.next_offset
            elif (directory / file_name(base, LOG)).exists():
                for suffix in SEGMENT_SUFFIXES:
                    (directory / (file_name(base, suffix) + SWAP)).unlink(missing_ok=True)
                _log.warning("%s: damaged at byte %d, and given up: the log isn't compacted", swap, found.position)
                return
    finally:
        os.close(fd)
    for name in _names(directory):
        offset = offset_of(name)
        if name.endswith(SEGMENT_SUFFIXES) and offset is not None and base <= offset < max(end, base + 1):
            (directory / name).unlink()


def _names(directory: Path) -> set[str]:
    with os.scandir(directory) as entries:
        return {entry.name for entry in entries}


def _remove_orphans(directory: Path, names: set[str], bases: set[int]) -> None:
    """Deletes the indexes of segments without a log."""
    for name in names:
        if name.endswith(SEGMENT_SUFFIXES) and offset_of(name) not in bases:
            (directory / name).unlink(missing_ok=True)
