"""Retention: which segments may be deleted by age or size."""

from __future__ import annotations

from kohort.log.config import LogConfig
from kohort.log.segments import Segments


def deletable(segments: Segments, config: LogConfig, high_watermark: int, log_end: int, now: int) -> int:
    """Returns how many segments may be deleted, from the first on, by `retention.ms` and `retention.bytes`.

    All of them, with the active one, if all are too old; none above the high watermark.
    """
    if not config.delete:
        return 0
    excess = segments.size - config.retention_bytes if config.retention_bytes >= 0 else -1
    number = 0
    for segment in segments:
        if not segment.size and segment is segments.active:
            break
        excess -= segment.size
        too_large = excess >= 0
        too_old = config.retention_ms >= 0 and now - segment.retention_timestamp > config.retention_ms
        if not (too_large or too_old) or segments.end_of(number, log_end) > high_watermark:
            break
        number += 1
    return number
