"""Names the losses of a log that is opened, notes them, and sets whole batches aside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kohort.log.aside import set_aside
from kohort.log.damage import Damage, DamageKind, Range, Report, known_losses, note_losses, unknown
from kohort.log.descriptors import open_file
from kohort.log.files import LOG
from kohort.log.salvage import Gap, batches_and_gaps
from kohort.log.scan import NO_LIMIT, ScannedBatch, claimed_end
from kohort.log.segment import DamagedSegmentError, Segment


class Losses:
    """The losses of one log.

    Attributes:
        end: the offset after all batches that were set aside.
    """

    def __init__(self, directory: Path, report: Report) -> None:
        self.directory = directory
        self.end = 0
        self._report = report

    def missing(self, gap: Range, reason: str) -> None:
        """Records aren't there. What is known of it, from an earlier start, isn't told again."""
        if gap.first >= gap.end:
            return
        lost = unknown(gap, known_losses(self.directory))
        if lost:
            self._report(Damage(DamageKind.MISSING_SEGMENT, self.directory, reason, tuple(lost)))
            note_losses(self.directory, lost)

    def truncate(
        self,
        segments: list[Segment],
        position: int,
        offset: int,
        reason: str,
        recovery_point: int,
        limit: int = NO_LIMIT,
    ) -> None:
        """Truncates the first of `segments` at a position, and sets aside whole batches after it, also of the others.

        Args:
            offset: the end of the batches before the position.
            reason: what is wrong there.
            recovery_point: the records before it were on the disk.
            limit: all offsets of the last segment are below it.

        Raises:
            OSError: a file can't be read or written; nothing is truncated then.
        """
        segment = segments[0]
        claimed = min(claimed_end(segment.fd, position, segment.size, offset), limit)
        rest = set_aside(self.directory, segments, position, offset, limit)
        lost = list(rest.lost)
        if not rest.aside and max(claimed, recovery_point) > offset:
            lost.append(Range(offset, max(claimed, recovery_point)))
        elif rest.end < recovery_point:
            lost.append(Range(rest.end, recovery_point))
        kind = DamageKind.DAMAGED_BATCH if rest.aside or recovery_point > offset else DamageKind.TORN_END
        where = f"at offset {offset}, byte {position} of {segment.path(LOG).name}: {reason}"
        self._report(Damage(kind, self.directory, where, tuple(lost), rest.size, rest.aside))
        if kind is DamageKind.DAMAGED_BATCH:
            self.end = max(self.end, rest.end, recovery_point)
            note_losses(self.directory, [Range(offset, self.end)])
        segment.truncate(position)
        segment.unflushed = True


def valid_in(segment: Segment, end: int, start: int = 0) -> Iterator[ScannedBatch]:
    """Yields the valid batches of a segment, from the one with offset `start` on, and reports what is between.

    The file is opened once more: it may be removed in the meantime.

    Args:
        end: the offset after the segment.
        start: batches before it may come, too, where it can't be found.

    Raises:
        OSError: the file can't be read.
    """
    base = segment.base_offset
    position, least = 0, base
    if start > base:
        try:
            located = segment.locate(start)
        except DamagedSegmentError:
            pass  # the batches before the damage lead to it
        else:
            position, least = (located.position, located.base_offset) if located else (segment.size, start)
    fd = open_file(segment.path(LOG), os.O_RDONLY)
    try:
        for item in batches_and_gaps(fd, position, segment.size, base_offset=base, least=least, limit=end):
            if isinstance(item, Gap):
                segment.note_gap(item, end)
            else:
                yield item
    finally:
        os.close(fd)
