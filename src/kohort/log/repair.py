"""Mends a partition's files, while no server uses them."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Final

from kohort.log.aside import copy_out
from kohort.log.checking import BROUGHT_BACK, Checkpoints, Finding, check_partition
from kohort.log.config import LogConfig
from kohort.log.damage import Damage, note_losses
from kohort.log.files import INDEX, LOG, TIME_INDEX, file_name, fsync_directory, offset_of
from kohort.log.log import Log
from kohort.log.recovery import finish_swaps
from kohort.log.salvage import stretches
from kohort.log.scan import NO_LIMIT
from kohort.protocol.errors import KafkaError

_COMPACTED: Final = LogConfig(cleanup_policy=frozenset({"compact"}))
"""Opened so, a log says nothing of offsets that are missing between segments: a check has said it."""


_CUT: Final = ("damaged batch", "torn end", "overlapping segments")


def repair_partition(
    directory: Path, checkpoints: Checkpoints, *, now: int, compacted: bool = False, contiguous: bool = False
) -> int:
    """Does what the findings of `check_partition` name as their remedies. A crash leaves what can be repaired again.

    Args:
        now: ms since 1970.
        compacted: as in `check_partition`.
        contiguous: as in `Log.open`.

    Returns:
        The offset after the log.

    Raises:
        OSError: a file can't be read or written.
    """
    finish_swaps(directory)
    findings = list(check_partition(directory, checkpoints, compacted=compacted))
    lost = [gone for finding in findings if _is_loss(finding) for gone in finding.offsets]
    for finding in findings:
        if finding.remedy == BROUGHT_BACK:
            _bring_back(directory, finding.file)
        elif finding.kind == "set aside" and finding.remedy:
            (directory / finding.file).unlink()
    bases = sorted(base for file in directory.glob(f"*{LOG}") if (base := offset_of(file.name)) is not None)
    following = {file_name(base, LOG): after for base, after in pairwise([*bases, NO_LIMIT])}
    for file in sorted({finding.file for finding in findings if finding.kind in _CUT}):
        _cut_out(directory, file, following[file])
    for name in (finding.file for finding in findings if finding.kind == "wrong index"):
        base = offset_of(name)
        assert base is not None
        _drop_indexes(directory, base)
    note_losses(directory, lost)
    fsync_directory(directory)
    # Indexes, leader epochs and the state of producers are made anew from all that is there now.
    for snapshot in directory.glob("*.snapshot"):
        snapshot.unlink()
    recovery_point = 0 if contiguous else checkpoints.recovery_point
    told: list[Damage] = []
    log = Log.open(
        directory, _COMPACTED, now=now, clean=False, recovery_point=recovery_point,
        log_start_offset=checkpoints.log_start, contiguous=contiguous, report=told.append,
    )  # fmt: skip
    if log.offline is not None:
        raise OSError(log.offline)
    end = log.log_end_offset
    try:
        log.close()
    except KafkaError as error:
        raise OSError(error.detail) from error
    return end


def _is_loss(finding: Finding) -> bool:
    return finding.kind in ("damaged batch", "missing segment")


def _bring_back(directory: Path, name: str) -> None:
    """Makes a file that was set aside a segment's log again."""
    base = offset_of(name)
    assert base is not None
    log = directory / file_name(base, LOG)
    if log.exists() and log.stat().st_size:
        raise OSError(f"{log} has records: {name} can't be brought back")
    (directory / name).replace(log)
    _drop_indexes(directory, base)


def _drop_indexes(directory: Path, base: int) -> None:
    """Removes a segment's indexes: a log that is opened makes them anew."""
    for suffix in (INDEX, TIME_INDEX):
        (directory / file_name(base, suffix)).unlink(missing_ok=True)


def _cut_out(directory: Path, name: str, limit: int) -> None:
    """Leaves the whole batches before the first damage in a segment; those after it get segments of their own.

    All offsets are below `limit`.
    """
    base = offset_of(name)
    assert base is not None
    _drop_indexes(directory, base)
    fd = os.open(directory / name, os.O_RDWR)
    try:
        found = list(stretches(fd, 0, os.fstat(fd).st_size, base_offset=base, least=base, limit=limit))
        keep = found.pop(0).size if found and not found[0].position else 0
        # What replaces the segment comes last: a crash before that leaves all of it.
        for stretch in reversed(found):
            copy_out(directory, fd, stretch, file_name(stretch.offsets.first, LOG))
        fsync_directory(directory)
        if not found or found[0].offsets.first != base:
            os.ftruncate(fd, keep)
            os.fsync(fd)
    finally:
        os.close(fd)
