"""Looks for damages in the files of partitions, without changing anything."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from kohort.log.aside import ASIDE
from kohort.log.damage import Range, known_losses, unknown
from kohort.log.data_directory import CLEANED_OFFSETS, LOG_STARTS, RECOVERY_POINTS
from kohort.log.files import CLEANED, DELETED, EPOCHS, INDEX, LOG, SWAP, TIME_INDEX, file_name, offset_of
from kohort.log.index import OffsetIndex, TimeIndex
from kohort.log.leader_epochs import LeaderEpochs
from kohort.log.salvage import Gap, batches_and_gaps
from kohort.log.scan import NO_LIMIT
from kohort.plurals import several

BROUGHT_BACK: Final = "brought back"
"""The remedy of batches that were set aside."""

_CHUNK: Final = 1 << 20

LEFT_OVER: Final = (CLEANED, SWAP, DELETED, ".tmp")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that isn't as it should be.

    Attributes:
        partition: the name of its directory.
        kind: "missing segment", for example; `KINDS` has all.
        file: that it is in; "" if it isn't in one.
        what: what is wrong, in a clause.
        offsets: that it is about.
        size: bytes that it is about.
        remedy: what a repair does about it; "" for nothing.
    """

    partition: str
    kind: str
    file: str
    what: str
    offsets: tuple[Range, ...] = ()
    size: int = 0
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """What the checkpoint files say of a partition; 0 for what they don't."""

    recovery_point: int = 0
    log_start: int = 0
    cleaned: int = 0


KINDS: Final = (
    "missing segment", "damaged batch", "torn end", "overlapping segments", "wrong index", "set aside", "left over",
    "wrong checkpoint", "stray", "missing directory", "metadata", "unreadable",
)  # fmt: skip


@dataclass(slots=True)
class _Scanned:
    """What a segment's log has.

    Attributes:
        end: the offset after its last whole batch.
        last_offsets: of the batches at the positions that the index has.
        last, timestamps: last offsets and latest timestamps of all batches, in order.
    """

    base: int
    end: int
    gaps: list[Gap] = field(default_factory=list)
    last_offsets: dict[int, int] = field(default_factory=dict)
    last: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)


def check_partition(
    directory: Path,
    checkpoints: Checkpoints,
    *,
    compacted: bool = False,
    clean: bool = True,
    contiguous: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> Iterator[Finding]:
    """Reads all files of a partition, and yields what is wrong.

    Args:
        compacted: whether offsets may be missing between segments.
        clean: whether the last server stopped cleanly: a torn end is no loss otherwise.
        contiguous: as in `Log.open`: the log may not end before its recovery point then, even if that is known.
        advance: called with the bytes of each segment that was read.

    Raises:
        OSError: a file can't be read.
    """
    partition = directory.name
    names = sorted(entry.name for entry in os.scandir(directory))
    yield from _left_over(partition, names)
    bases = [offset for name in names if name.endswith(LOG) and (offset := offset_of(name)) is not None]
    known = known_losses(directory)
    scanned = []
    for base, limit in pairwise([*bases, NO_LIMIT]):
        found = _scan(directory, base, limit)
        scanned.append(found)
        advance((directory / file_name(base, LOG)).stat().st_size)
        yield from _damages(directory, found, following=limit, clean=clean, recovery=checkpoints.recovery_point)
        yield from _wrong_indexes(directory, found, sealed=base != bases[-1])
    yield from _asides(directory, names, scanned)
    yield from _gaps(directory, scanned, checkpoints, known, compacted)
    end = scanned[-1].end if scanned else 0
    if contiguous and end < checkpoints.recovery_point:
        what = f"it says {checkpoints.recovery_point}, but the log ends at {end}"
        yield Finding(partition, "wrong checkpoint", RECOVERY_POINTS, what, remedy="set to the end")
    yield from _wrong_checkpoints(partition, end, checkpoints, known)


def _scan(directory: Path, base: int, limit: int) -> _Scanned:
    index_path = directory / file_name(base, INDEX)
    positions = set(OffsetIndex(index_path, load=True).positions)
    found = _Scanned(base, base)
    fd = os.open(directory / file_name(base, LOG), os.O_RDONLY)
    try:
        for item in batches_and_gaps(fd, 0, os.fstat(fd).st_size, base_offset=base, least=base, limit=limit):
            if isinstance(item, Gap):
                found.gaps.append(item)
                continue
            header = item.header
            found.end = header.next_offset
            found.last.append(header.last_offset)
            found.timestamps.append(header.max_timestamp)
            if item.file_position in positions:
                found.last_offsets[item.file_position] = header.last_offset
    finally:
        os.close(fd)
    return found


def _left_over(partition: str, names: list[str]) -> Iterator[Finding]:
    for name in names:
        if name.endswith(LEFT_OVER) and not name.endswith(DELETED):
            what = "a crash has left it"
            yield Finding(partition, "left over", name, what, remedy="completed or removed, as the next start does")
    doomed = [name for name in names if name.endswith(DELETED)]
    if doomed:
        files = several(len(doomed), "file")
        what = f"{files} of deleted segments: a crash has left them, or Apache Kafka is about to remove them"
        yield Finding(partition, "left over", doomed[0], what, remedy="removed, as the next start does")


def _damages(directory: Path, found: _Scanned, *, following: int, clean: bool, recovery: int) -> Iterator[Finding]:
    name = file_name(found.base, LOG)
    last = following == NO_LIMIT
    for gap in found.gaps:
        size = gap.end - gap.position
        what = f"byte {gap.position}: {gap.reason}"
        if gap.following is not None:
            lost = (Range(gap.least, gap.following),) if gap.following > gap.least else ()
            remedy = "cut out; what is after it gets a segment of its own"
            yield Finding(directory.name, "damaged batch", name, what, lost, size, remedy)
        else:
            torn = last and not clean and gap.least >= recovery
            remedy = "cut off, as the next start does" if torn else "cut off"
            kind = "torn end" if torn else "damaged batch"
            if gap.least == following:
                kind = "overlapping segments"
            lost = (Range(gap.least, recovery),) if recovery > gap.least and last else ()
            yield Finding(directory.name, kind, name, what, lost, size, remedy)


def _wrong_indexes(directory: Path, found: _Scanned, *, sealed: bool) -> Iterator[Finding]:
    remedy = "made anew from the log"
    name = file_name(found.base, INDEX)
    index = OffsetIndex(directory / name, load=True)
    before = -1
    for offset, position in zip(index.offsets, index.positions, strict=True):
        if any(gap.position <= position < gap.end for gap in found.gaps):
            continue  # a damaged batch, which is told of
        if found.last_offsets.get(position) != found.base + offset or offset <= before:
            what = f"it says that the batch with offset {found.base + offset} is at byte {position}"
            yield Finding(directory.name, "wrong index", name, what, remedy=remedy)
            break
        before = offset
    times_name = file_name(found.base, TIME_INDEX)
    times = TimeIndex(directory / times_name, load=True)
    for timestamp, offset in zip(times.timestamps, times.offsets, strict=True):
        batch = bisect_left(found.last, found.base + offset)
        if any(gap.least <= found.base + offset and (batch == len(found.last) or gap.following) for gap in found.gaps):
            continue
        if batch == len(found.last) or found.timestamps[batch] != timestamp:
            what = f"it says that the batch with offset {found.base + offset} has the time {timestamp}"
            yield Finding(directory.name, "wrong index", times_name, what, remedy=remedy)
            break
    else:
        behind = sealed and (directory / times_name).exists() and times.last[0] < max(found.timestamps, default=-1)
        if behind or not times.ascending:
            what = f"it says that no batch is later than {times.last[0]}"
            yield Finding(directory.name, "wrong index", times_name, what, remedy=remedy)
    if sealed and found.last:
        for missing in (name, times_name):
            if not (directory / missing).exists():
                yield Finding(directory.name, "wrong index", missing, "it is missing", remedy=remedy)


def _asides(directory: Path, names: list[str], scanned: list[_Scanned]) -> Iterator[Finding]:
    for name in names:
        if LOG + ASIDE not in name or name.endswith(LEFT_OVER):
            continue
        file = directory / name
        offsets = aside_offsets(file)
        size = file.stat().st_size
        if offsets is None:
            yield Finding(directory.name, "set aside", name, "it is damaged itself", size=size)
        elif _is_copy(file, directory / file_name(offset_of(name) or 0, LOG)):
            what = "a crash has left it: the log has these batches, too"
            yield Finding(directory.name, "set aside", name, what, (offsets,), size, "removed")
        elif any(_overlaps(found, offsets) for found in scanned):
            what = "these offsets have other records in the log"
            yield Finding(directory.name, "set aside", name, what, (offsets,), size)
        else:
            what = "whole batches that were after a damage"
            yield Finding(directory.name, "set aside", name, what, (offsets,), size, BROUGHT_BACK)


def _is_copy(file: Path, log: Path) -> bool:
    """Whether a segment's log begins with all of a file that was set aside."""
    try:
        if file.samefile(log):
            return True
        with file.open("rb") as copied, log.open("rb") as stream:
            while piece := copied.read(_CHUNK):
                if stream.read(len(piece)) != piece:
                    return False
    except FileNotFoundError:
        return False
    return True


def aside_offsets(file: Path) -> Range | None:
    """The offsets of the batches in a file that was set aside; None if these aren't whole any more."""
    base = offset_of(file.name)
    if base is None:
        return None
    first, end = None, base
    fd = os.open(file, os.O_RDONLY)
    try:
        for item in batches_and_gaps(fd, 0, os.fstat(fd).st_size, base_offset=base, least=base):
            if isinstance(item, Gap):
                return None
            first = item.header.base_offset if first is None else first
            end = item.header.next_offset
    finally:
        os.close(fd)
    return None if first is None else Range(first, end)


def _overlaps(found: _Scanned, offsets: Range) -> bool:
    """Whether a segment has batches among these offsets."""
    at = bisect_left(found.last, offsets.first)
    if at == len(found.last):
        return False
    after = found.last[at - 1] + 1 if at else found.base
    in_gap = any(gap.least <= offsets.first and offsets.end <= (gap.following or 0) for gap in found.gaps)
    return not in_gap and after < offsets.end


def _gaps(
    directory: Path, scanned: list[_Scanned], checkpoints: Checkpoints, known: list[Range], compacted: bool
) -> Iterator[Finding]:
    remedy = "noted as lost, so that it isn't told again"

    def missing(first: int, end: int, what: str) -> Iterator[Finding]:
        lost = unknown(Range(first, end), known) if first < end else []
        if lost:
            yield Finding(directory.name, "missing segment", "", what, tuple(lost), remedy=remedy)

    if not scanned:
        yield from missing(checkpoints.log_start, checkpoints.recovery_point, "there are no segments")
        return
    epochs = LeaderEpochs(directory)
    if (directory / EPOCHS).exists():
        epochs.load()
    if epochs.starts:
        first = max(epochs.starts[0][1], checkpoints.log_start)
        yield from missing(first, scanned[0].base, "the first segments are missing")
    for before, after in pairwise(scanned):
        if not compacted and after.base > checkpoints.cleaned and not _ends_torn(before):
            name = file_name(after.base, LOG)
            yield from missing(before.end, after.base, f"a segment is missing before {name}")
        elif _ends_torn(before):
            yield from missing(before.end, after.base, f"{file_name(before.base, LOG)} ends with a damage")
    if not _ends_torn(scanned[-1]):
        what = "the log ends before these, though they were on the disk"
        yield from missing(scanned[-1].end, checkpoints.recovery_point, what)


def _ends_torn(found: _Scanned) -> bool:
    return bool(found.gaps) and found.gaps[-1].following is None


def _wrong_checkpoints(partition: str, end: int, checkpoints: Checkpoints, known: list[Range]) -> Iterator[Finding]:
    end = max([end, *(loss.end for loss in known)])
    for file, offset in (
        (LOG_STARTS, checkpoints.log_start),
        (CLEANED_OFFSETS, checkpoints.cleaned),
    ):
        if offset > max(end, checkpoints.recovery_point):
            what = f"it says {offset}, but the log ends at {end}"
            yield Finding(partition, "wrong checkpoint", file, what, remedy="removed from it")
