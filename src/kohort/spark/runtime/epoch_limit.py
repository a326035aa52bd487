"""How much an epoch reads: so that it takes about as long as wanted, and fits into memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

Key = TypeVar("Key")

_FEWEST: Final = 500
_WORTHWHILE: Final = 20_000
"""Up to here an epoch costs about the same, whatever it reads: reading less takes as long, and a backlog only grows."""
_FULL: Final = 0.9  # of the limit: less says nothing of what more would cost
_QUICK: Final = 0.6  # of the target: twice as much would still be about in time
_SLOW: Final = 1.5
_GROWTH: Final = 4
"""How many times as much an epoch reads at most as the one before. An instance's first epochs are mostly what any epoch
costs, and the first of their kind cost more: a backlog waits while they are small."""


@dataclass(frozen=True)
class LimitSettings:
    """How large epochs may be.

    Attributes:
        first_records: the limit of a subtopology's first epoch.
        most_records: never more than that.
        most_bytes: of keys and values, by what records were large until now.
        target_ms: what an epoch shall take when there is a backlog.
    """

    first_records: int = 5_000
    most_records: int = 400_000
    most_bytes: int = 256 * 1024 * 1024
    target_ms: float = 5_000


class EpochLimit:
    """The most records that the next epoch of a subtopology reads: grows and halves with what epochs take."""

    def __init__(self, settings: LimitSettings) -> None:
        self._settings = settings
        self._records = min(settings.first_records, settings.most_records)
        self._record_bytes = 0.0

    @property
    def records(self) -> int:
        """The limit now."""
        most = self._settings.most_records
        if self._record_bytes > 0:
            most = min(most, int(self._settings.most_bytes / self._record_bytes))
        return max(1, min(self._records, most))

    def took(self, ms: float, offsets: int, records: int, size: int) -> None:
        """An epoch is done.

        Args:
            offsets: how many it went over: in a topic that was compacted, not each has a record.
            records, size: what it read, the size in bytes.
        """
        settings = self._settings
        if records > 0:
            # Larger records count at once, smaller ones only by and by: memory is what is at stake.
            self._record_bytes = max(size / records, 0.8 * self._record_bytes)
        if offsets < _FULL * self.records:
            return
        if ms < _QUICK * settings.target_ms or self._records < _WORTHWHILE:
            # Even if all that it took is for its records, so many times of it are in time.
            growth = min(_GROWTH, max(2, int(settings.target_ms / max(ms, 1))))
            self._records = min(settings.most_records, growth * self._records)
        elif ms > _SLOW * settings.target_ms:
            self._records = max(_WORTHWHILE, self._records // 2)

    def failed(self) -> None:
        """An epoch failed, perhaps since it was too large; and by far, where it isn't known how large records are."""
        self._records = max(_FEWEST, self._records // 2) if self._record_bytes > 0 else _FEWEST


def share(limit: int, waiting: Mapping[Key, int]) -> dict[Key, int]:
    """How many of its waiting records each may read, if all together may read so many.

    Evenly, and what some don't need goes to the others: so no partition gets ahead of others in time because it has a
    larger backlog. Those that have nothing to read aren't in it.
    """
    left = {key: count for key, count in waiting.items() if count > 0}
    given: dict[Key, int] = {}
    for position, (key, count) in enumerate(sorted(left.items(), key=lambda item: item[1])):
        given[key] = min(count, limit // (len(left) - position))
        limit -= given[key]
    return {key: given[key] for key in left if given[key] > 0}
