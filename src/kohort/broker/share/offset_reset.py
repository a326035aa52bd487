"""Where a share group begins in a partition it has no offset for: `share.auto.offset.reset`."""

from __future__ import annotations

import re
from typing import Final

from kohort.log.log import Log

_DURATION: Final = re.compile(
    r"by_duration:\+?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{0,9}))?S)?)?", re.IGNORECASE
)


def start_offset(log: Log, reset: str, now: int) -> int:
    """The first offset that the group is given.

    Args:
        reset: "earliest", "latest" (what is appended from now on), or "by_duration:" with an ISO 8601 duration: the
            first record that isn't older; if there is none, as "latest".
        now: ms since 1970.

    Raises:
        KafkaError: KAFKA_STORAGE_ERROR.
        ValueError: `reset` is something else.
    """
    if reset == "earliest":
        return log.log_start_offset
    if reset == "latest":
        return log.high_watermark
    found = log.offset_for_timestamp(max(0, now - duration_ms(reset)))
    return log.high_watermark if found is None else min(found.offset, log.high_watermark)


def duration_ms(reset: str) -> int:
    """The duration of "by_duration:PnDTnHnMn.nS", in ms.

    Raises:
        ValueError: it is something else.
    """
    match = _DURATION.fullmatch(reset)
    if match is None:
        raise ValueError(f"{reset!r} is no duration")
    days, hours, minutes, seconds, fraction = match.groups()
    whole = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return whole * 1000 + int((fraction or "").ljust(3, "0")[:3])
