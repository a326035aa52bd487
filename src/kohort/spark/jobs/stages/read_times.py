"""How long a stage reads: a few looks at the clock for each batch of records, none for a single one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from kohort.spark.epoch import EpochStatistics, OffsetRange, Read

_Each = TypeVar("_Each")


class ReadTimes:
    """What the reading of a split takes, from now on.

    Args:
        clock: returns seconds, from whenever on.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self._fetch_s = self._decode_s = 0.0

    def fetching(self, fetched: Iterable[_Each]) -> Iterator[_Each]:
        """The same, of which each is waited for: not what is done with it before the next one is wanted."""
        each = iter(fetched)
        while True:
            wanted = self._clock()
            try:
                found = next(each)
            except StopIteration:
                return
            finally:
                self._fetch_s += self._clock() - wanted
            yield found

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Meanwhile, columns are made of values."""
        began = self._clock()
        yield
        self._decode_s += self._clock() - began

    def read(self, ranges: Sequence[OffsetRange], statistics: EpochStatistics) -> Read:
        """What it was, up to now: `ranges` are the split's, `statistics` what was counted of it."""
        return Read(
            statistics.records,
            statistics.bytes,
            took_ms=(self._clock() - self._began) * 1000,
            fetch_ms=self._fetch_s * 1000,
            decode_ms=self._decode_s * 1000,
            partitions=tuple(dict.fromkeys(f"{each.topic}-{each.partition}" for each in ranges)),
        )
