"""Names the losses of a log that is opened, notes them, and sets whole batches aside."""

from __future__ import annotations

from pathlib import Path

from kohort.log.aside import set_aside
from kohort.log.damage import Damage, DamageKind, Range, Report, known_losses, note_losses, unknown
from kohort.log.files import LOG
from kohort.log.salvage import stretches
from kohort.log.scan import claimed_end
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

    def truncate(self, segments: list[Segment], position: int, offset: int, reason: str, recovery_point: int) -> None:
        """Truncates the first of `segments` at a position, and sets aside whole batches after it, also of the others.

        Args:
            offset: the end of the batches before the position.
            reason: what is wrong there.
            recovery_point: the records before it were on the disk.

        Raises:
            OSError: a file can't be read or written; nothing is truncated then.
        """
        segment = segments[0]
        claimed = claimed_end(segment.fd, position, segment.size, offset)
        rest = set_aside(self.directory, segments, position, offset)
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


def found_by_reader(segment: Segment, error: DamagedSegmentError) -> Damage:
    """What a reader that has met a damage has lost: nothing is changed."""
    following = stretches(
        segment.fd, error.position, segment.size, base_offset=segment.base_offset, least=error.expected
    )
    end, stop = claimed_end(segment.fd, error.position, segment.size, error.expected), segment.size
    for run in following:
        end, stop = run.offsets.first, run.position
        break
    lost = (Range(error.expected, end),) if end > error.expected else ()
    where = f"from byte {error.position} of {segment.path(LOG).name} on there is no whole batch"
    return Damage(DamageKind.DAMAGED_BATCH, segment.directory, where, lost, stop - error.position, to_mend=True)
