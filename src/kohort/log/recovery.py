"""Opening a log's directory: what a crash left behind is put right, and everything whole is kept.

After a clean shutdown only the end of the last segment is looked at. Otherwise every segment from the recovery point
on is read and checked; the log is cut at the first batch that isn't whole and valid, and indexes, leader epochs and
producers are made anew from what is left. What a compaction left half done is finished or undone.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kohort.log.config import LogConfig
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
)  # fmt: skip
from kohort.log.leader_epochs import LeaderEpochs
from kohort.log.producer_snapshot import load_snapshot
from kohort.log.producer_state import ProducerStates
from kohort.log.scan import ScannedBatch, scan
from kohort.log.segment import Segment
from kohort.log.transaction_index import AbortedTransaction
from kohort.log.transaction_markers import read_marker
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import NO_SEQUENCE, next_sequence

__all__ = ["Loaded", "ended_transaction", "fresh", "load"]

_log: Final = logging.getLogger("kohort.log")

_INDEXES: Final = (INDEX, TIME_INDEX)


@dataclass
class Loaded:
    """What is in a log's directory.

    Attributes:
        segments: at least one, in order.
        producers, epochs: as they are at the end.
        log_start_offset, log_end_offset: of the first record, and after the last.
        snapshot_offset: of the snapshot that the producers were read from, -1 without one.
    """

    segments: list[Segment]
    producers: ProducerStates
    epochs: LeaderEpochs
    log_start_offset: int
    log_end_offset: int
    snapshot_offset: int


def load(
    directory: Path, config: LogConfig, *, now: int, clean: bool, recovery_point: int, log_start_offset: int
) -> Loaded:
    """Open what is in `directory`; an empty one becomes a log that begins at `log_start_offset`.

    Raises:
        OSError: a file can't be read, or what must be cut can't be.
        CorruptRecordError: there is damage before the recovery point, and it is in the way.
    """
    names = _finish_swaps(directory)
    snapshots = sorted(offset for name in names if name.endswith(SNAPSHOT) and (offset := offset_of(name)) is not None)
    bases = sorted(offset for name in names if name.endswith(LOG) and (offset := offset_of(name)) is not None)
    if not bases:
        return _emptied(directory, snapshots, log_start_offset, now)
    _remove_orphans(directory, names, set(bases))
    epochs = LeaderEpochs(directory)
    if EPOCHS in names:
        epochs.load()
    segments = [Segment(directory, base, (directory / file_name(base, LOG)).stat().st_size, now) for base in bases]
    doubtful = _first_doubtful(segments, names, clean, recovery_point)
    log_end = _clean_end(segments[-1]) if doubtful == len(segments) else None
    if log_end is None:
        doubtful = min(doubtful, len(segments) - 1)
    producers = ProducerStates()
    start = segments[doubtful].base_offset if log_end is None else log_end
    known = load_snapshot(directory, [offset for offset in snapshots if offset <= start], producers)
    _replay(segments, producers, known or 0, start)
    if log_end is None:
        log_end = _recover(segments, doubtful, producers, epochs, config)
    if log_end < log_start_offset:
        _log.warning("%s: ends at %d, before its start %d: emptied", directory, log_end, log_start_offset)
        for segment in segments:
            segment.delete()
        return _emptied(directory, snapshots, log_start_offset, now)
    wanted = {known, *(segment.base_offset for segment in segments)}
    for offset in snapshots:
        if offset > log_end or offset not in wanted:
            (directory / file_name(offset, SNAPSHOT)).unlink(missing_ok=True)
    producers.expire(now, config.producer_id_expiration_ms)
    log_start = max(log_start_offset, bases[0])
    epochs.truncate_end(log_end)
    epochs.truncate_start(log_start)
    return Loaded(segments, producers, epochs, log_start, log_end, -1 if known is None else known)


def ended_transaction(
    producers: ProducerStates, producer_id: int, first_offset: int, marker_at: int
) -> AbortedTransaction:
    """The entry for an aborted transaction of which `producers` know already that it is over."""
    stable = next(iter(producers.ongoing.values()), marker_at + 1)
    return AbortedTransaction(producer_id, first_offset, marker_at, stable)


def fresh(directory: Path, offset: int, now: int) -> Loaded:
    """An empty log that begins at `offset`, in a directory with nothing in it."""
    return Loaded(
        [Segment.create(directory, offset, now)], ProducerStates(), LeaderEpochs(directory), offset, offset, -1
    )


def _emptied(directory: Path, snapshots: list[int], offset: int, now: int) -> Loaded:
    for stray in snapshots:
        (directory / file_name(stray, SNAPSHOT)).unlink(missing_ok=True)
    (directory / EPOCHS).unlink(missing_ok=True)
    return fresh(directory, offset, now)


def _first_doubtful(segments: list[Segment], names: set[str], clean: bool, recovery_point: int) -> int:
    """The number of the first segment that must be read and checked."""
    for number, segment in enumerate(segments):
        # A segment that holds nothing may do without its indexes.
        indexed = not segment.size or names.issuperset(file_name(segment.base_offset, kind) for kind in _INDEXES)
        last = number + 1 == len(segments)
        if not indexed or (not clean and (last or recovery_point < segments[number + 1].base_offset)):
            return number
    return len(segments)


def _clean_end(segment: Segment) -> int | None:
    """The offset after the last batch; None if the end isn't whole after all."""
    end = segment.base_offset
    start = segment.index.positions[-1] if len(segment.index) else 0
    try:
        if start and start >= segment.size:
            raise CorruptRecordError(None, segment.size, f"the index has one at byte {start}")
        for header, _, _ in scan(segment.fd, 0, segment.size, check=False):
            segment.first_timestamp = header.max_timestamp
            break
        for header, _, _ in scan(segment.fd, start, segment.size, check=False):
            end = header.next_offset
    except CorruptRecordError as error:
        _log.warning("%s: was closed cleanly, but its end is no batch: %s", segment.path(LOG), error)
        return None
    return end


def _replay(segments: list[Segment], producers: ProducerStates, start: int, end: int) -> None:
    """Let `producers` see the batches from offset `start` up to `end`."""
    for number, segment in enumerate(segments):
        if segment.base_offset >= end:
            break
        if number + 1 < len(segments) and segments[number + 1].base_offset <= start:
            continue
        for batch in segment.batches(max(start, segment.base_offset)):
            if batch.header.base_offset >= start:
                _apply(producers, batch)
        if number + 1 < len(segments):
            segment.release()


def _apply(producers: ProducerStates, batch: ScannedBatch) -> AbortedTransaction | None:
    """Let `producers` see a batch; returns the transaction that it aborts."""
    header = batch.header
    if header.producer_id < 0:
        return None
    if not header.control:
        sequence = header.base_sequence
        last = next_sequence(sequence, header.last_offset_delta) if sequence >= 0 else NO_SEQUENCE
        producers.wrote(header, header.base_offset, last, header.max_timestamp)
        return None
    marker = read_marker(batch.data, header)
    if marker is None:
        return None
    first = producers.ended(header.producer_id, header.producer_epoch, marker, header.max_timestamp)
    if marker.commit or first < 0:
        return None
    return ended_transaction(producers, header.producer_id, first, header.base_offset)


def _recover(
    segments: list[Segment], first: int, producers: ProducerStates, epochs: LeaderEpochs, config: LogConfig
) -> int:
    """Check the segments from number `first` on, index them anew, and cut where something isn't right.

    Returns the offset after the last good batch.
    """
    log_end = segments[first].base_offset
    for number in range(first, len(segments)):
        segment = segments[number]
        whole = segment.size
        log_end, good = _recover_segment(segment, producers, epochs, config)
        if number + 1 < len(segments):
            segment.seal()
            segment.release()
        if good < whole:
            rest = segments[number + 1 :]
            lost = whole - good + sum(later.size for later in rest)
            _log.warning(
                "%s: cut at byte %d, offset %d: %d bytes that aren't whole batches are gone, as after a crash",
                segment.path(LOG), good, log_end, lost,
            )  # fmt: skip
            for later in rest:
                later.delete()
            del segments[number + 1 :]
            break
    return log_end


def _recover_segment(
    segment: Segment, producers: ProducerStates, epochs: LeaderEpochs, config: LogConfig
) -> tuple[int, int]:
    """Check and index one; returns the offset after its last good batch, and that batch's end in bytes."""
    size, end, good = segment.size, segment.base_offset, 0
    segment.reindex()
    try:
        for batch in scan(segment.fd, 0, size, check=True, base_offset=segment.base_offset):
            header = batch.header
            if header.last_offset - segment.base_offset > 2**31 - 1:
                raise CorruptRecordError(header.base_offset, batch.file_position, "too far from its segment's offset")
            aborted = _apply(producers, batch)
            if not good:
                segment.first_timestamp = header.max_timestamp
            segment.note(good, header.size, header.last_offset, header.max_timestamp, config.index_interval_bytes)
            if aborted is not None:
                segment.aborted.append(aborted)
            if header.partition_leader_epoch > epochs.latest:
                epochs.assign(header.partition_leader_epoch, header.base_offset)
            end, good = header.next_offset, good + header.size
    except CorruptRecordError as error:
        _log.info("%s: %s", segment.path(LOG), error)
        segment.cut(good)
    return end, good


def _finish_swaps(directory: Path) -> set[str]:
    """Finish or undo what a compaction was doing when the process died, as Kafka does.

    Files named `.cleaned` were being written: they go. Once the last of a segment's files, its log, is named `.swap`,
    it takes the place of all it was made from.
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
    for name in sorted(swaps, key=lambda name: name.endswith(LOG + SWAP)):
        (directory / name).replace(directory / name.removesuffix(SWAP))
    fsync_directory(directory)
    return _names(directory)


def _remove_replaced(directory: Path, swap: str) -> None:
    """Remove the segments that a compacted one replaces: those that begin within it."""
    base = offset_of(swap)
    assert base is not None
    fd = os.open(directory / swap, os.O_RDONLY)
    end = base
    try:
        for header, _, _ in scan(fd, 0, os.fstat(fd).st_size, check=False):
            end = header.next_offset
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
    """Remove the indexes of segments that aren't there."""
    for name in names:
        if name.endswith(SEGMENT_SUFFIXES) and offset_of(name) not in bases:
            (directory / name).unlink(missing_ok=True)
