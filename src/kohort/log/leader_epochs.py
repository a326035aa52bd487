"""The leader epochs of a log (KIP-101), in Kafka's `leader-epoch-checkpoint`."""

from __future__ import annotations

import logging
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Final

from kohort.log.checkpoints import parse_checkpoint, render_checkpoint
from kohort.log.files import EPOCHS, write_atomically
from kohort.log.types import NOT_FOUND, EpochEnd

_log: Final = logging.getLogger("kohort.log")


class LeaderEpochs:
    """Leader epochs and their start offsets; both ascend."""

    __slots__ = ("_path", "latest", "starts")

    def __init__(self, directory: Path) -> None:
        self._path = directory / EPOCHS
        self.starts: list[tuple[int, int]] = []
        self.latest = NOT_FOUND

    def load(self) -> None:
        """Reads the file; an invalid one counts as empty."""
        try:
            rows = parse_checkpoint(self._path.read_text("ascii", "replace"))
            starts = [(int(epoch), int(offset)) for epoch, offset in rows]
            if any(b <= a or d < c for (a, c), (b, d) in pairwise(starts)):
                raise ValueError("epochs or offsets don't ascend")
        except FileNotFoundError:
            starts = []
        except ValueError as error:
            _log.warning("%s: ignored, as it is invalid: %s", self._path, error)
            starts = []
        self._set(starts)

    def assign(self, epoch: int, offset: int) -> None:
        """Adds an epoch that starts at `offset`; ignored if it isn't newer.

        Raises:
            OSError: the file can't be written.
        """
        if epoch > self.latest:
            self._set([*((earlier, start) for earlier, start in self.starts if start < offset), (epoch, offset)])
            self.save()

    def end_of(self, epoch: int, log_end: int) -> EpochEnd:
        """Returns the epoch, or the latest before it, with its end offset, for OffsetForLeaderEpoch."""
        if epoch < 0 or epoch > self.latest:
            return EpochEnd(NOT_FOUND, NOT_FOUND)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end)
        following = bisect_right(self.starts, (epoch, log_end))
        earlier = self.starts[following - 1][0] if following else epoch
        return EpochEnd(earlier, self.starts[following][1])

    def truncate_end(self, offset: int) -> None:
        """Removes epochs that start at `offset` or later."""
        kept = [(epoch, start) for epoch, start in self.starts if start < offset]
        if kept != self.starts:
            self._set(kept)
            self.save()

    def truncate_start(self, offset: int) -> None:
        """Makes the epochs start at `offset`, the new log start offset."""
        following = [(epoch, start) for epoch, start in self.starts if start > offset]
        before = self.starts[: len(self.starts) - len(following)]
        kept = [(epoch, max(start, offset)) for epoch, start in before[-1:]] + following
        if kept != self.starts:
            self._set(kept)
            self.save()

    def save(self) -> None:
        write_atomically(self._path, render_checkpoint(map(str, row) for row in self.starts), sync=False)

    def _set(self, starts: list[tuple[int, int]]) -> None:
        self.starts = starts
        self.latest = starts[-1][0] if starts else NOT_FOUND
