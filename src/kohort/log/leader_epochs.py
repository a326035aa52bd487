"""Which leader epoch each part of a log was written in (KIP-101), kept in Kafka's `leader-epoch-checkpoint`."""

from __future__ import annotations

import logging
from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from typing import Final

from kohort.log.checkpoints import parse_checkpoint, render_checkpoint
from kohort.log.files import EPOCHS, write_atomically
from kohort.log.types import NOT_FOUND, EpochEnd

__all__ = ["LeaderEpochs"]

_log: Final = logging.getLogger("kohort.log")


class LeaderEpochs:
    """Leader epochs and the offsets where they began; both ascend."""

    __slots__ = ("_path", "latest", "starts")

    def __init__(self, directory: Path) -> None:
        self._path = directory / EPOCHS
        self.starts: list[tuple[int, int]] = []
        self.latest = NOT_FOUND

    def load(self) -> None:
        """Read the file; one that makes no sense counts as none."""
        try:
            rows = parse_checkpoint(self._path.read_text("ascii", "replace"))
            starts = [(int(epoch), int(offset)) for epoch, offset in rows]
            if any(b <= a or d < c for (a, c), (b, d) in pairwise(starts)):
                raise ValueError("epochs or offsets don't ascend")
        except FileNotFoundError:
            starts = []
        except ValueError as error:
            _log.warning("%s: passed over, as it makes no sense: %s", self._path, error)
            starts = []
        self._set(starts)

    def assign(self, epoch: int, offset: int) -> None:
        """Batches from `offset` on are of `epoch`; an epoch that isn't newer says nothing.

        Raises:
            OSError: the file can't be written.
        """
        if epoch > self.latest:
            self._set([*((known, start) for known, start in self.starts if start < offset), (epoch, offset)])
            self.save()

    def end_of(self, epoch: int, log_end: int) -> EpochEnd:
        """The epoch itself or the latest before it, and where it ended; as OffsetForLeaderEpoch wants it."""
        if epoch < 0 or epoch > self.latest:
            return EpochEnd(NOT_FOUND, NOT_FOUND)
        if epoch == self.latest:
            return EpochEnd(epoch, log_end)
        following = bisect_right(self.starts, (epoch, log_end))
        known = self.starts[following - 1][0] if following else epoch
        return EpochEnd(known, self.starts[following][1])

    def epoch_at(self, offset: int) -> int:
        """The epoch of a record, -1 if it isn't known."""
        known = NOT_FOUND
        for epoch, start in self.starts:
            if start > offset:
                break
            known = epoch
        return known

    def truncate_end(self, offset: int) -> None:
        """The log now ends at `offset`."""
        kept = [(epoch, start) for epoch, start in self.starts if start < offset]
        if kept != self.starts:
            self._set(kept)
            self.save()

    def truncate_start(self, offset: int) -> None:
        """The log now begins at `offset`: the epoch in which that was written begins there."""
        following = [(epoch, start) for epoch, start in self.starts if start > offset]
        before = self.starts[: len(self.starts) - len(following)]
        kept = [(epoch, max(start, offset)) for epoch, start in before[-1:]] + following
        if kept != self.starts:
            self._set(kept)
            self.save()

    def save(self) -> None:
        """Write the file."""
        write_atomically(self._path, render_checkpoint(map(str, row) for row in self.starts), sync=False)

    def _set(self, starts: list[tuple[int, int]]) -> None:
        self.starts = starts
        self.latest = starts[-1][0] if starts else NOT_FOUND
