"""Scrubbing: checksums of all batches are compared, as disks lose bytes in silence.

It has three steps, so that the slow one can run in a thread: `Log.plan_scrub` lists the segments, `SegmentScrub.run`
reads one, and `Log.finish_scrub` reports what it found.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kohort.log.salvage import Gap, batches_and_gaps
from kohort.log.segment import Segment

Pause = Callable[[], bool]
"""Called between two batches: may sleep, and returns whether to go on."""


@dataclass
class SegmentScrub:
    """A scrub of a segment, up to where it ended when that was planned.

    Attributes:
        path: of its log.
        size: bytes to be read.
        end_offset: the offset after them.
        gaps: what is damaged, once it has run.
    """

    segment: Segment
    path: Path
    size: int
    end_offset: int
    gaps: list[Gap] = field(default_factory=list)

    def run(self, pause: Pause) -> bool:
        """Reads the segment. Runs in any thread.

        Returns:
            Whether it was read to its end.

        Raises:
            OSError: the file can't be read, or isn't there any more.
        """
        base = self.segment.base_offset
        fd = os.open(self.path, os.O_RDONLY)
        try:
            for item in batches_and_gaps(fd, 0, self.size, base_offset=base, least=base, limit=self.end_offset):
                if isinstance(item, Gap):
                    self.gaps.append(item)
                if not pause():
                    return False
        finally:
            os.close(fd)
        return True
