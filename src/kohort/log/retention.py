"""Retention: which segments may be deleted by age or size."""

from __future__ import annotations

from typing import Final, NamedTuple

from kohort.log.config import LogConfig
from kohort.log.segments import Segments


class Expired(NamedTuple):
    """Segments that retention deletes.

    Attributes:
        number: how many, from the first on.
        by_age: how many of them by `retention.ms`; the others are by `retention.bytes`.
        newest: the latest time that is in them, ms since 1970; -1 if there are none.
    """

    number: int
    by_age: int
    newest: int


_NOTHING: Final = Expired(0, 0, -1)


def deletable(segments: Segments, config: LogConfig, high_watermark: int, log_end: int, now: int) -> Expired:
    """Returns which segments may be deleted, by `retention.ms` and `retention.bytes`.

    All of them, with the active one, if all are too old; none above the high watermark.
    """
    if not config.delete:
        return _NOTHING
    excess = segments.size - config.retention_bytes if config.retention_bytes >= 0 else -1
    number = by_age = 0
    newest = -1
    for segment in segments:
        if not segment.size and segment is segments.active:
            break
        excess -= segment.size
        too_large = excess >= 0
        time = segment.retention_timestamp
        too_old = config.retention_ms >= 0 and now - time > config.retention_ms
        if not (too_large or too_old) or segments.end_of(number, log_end) > high_watermark:
            break
        number += 1
        by_age += too_old
        newest = max(newest, time)
    return Expired(number, by_age, newest)
