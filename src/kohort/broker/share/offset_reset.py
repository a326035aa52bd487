"""Where a share group begins in a partition it has no offset for: `share.auto.offset.reset`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from kohort.broker.expansion import Expansion
from kohort.broker.turns import Line, Slices, Turns
from kohort.log.log import Log
from kohort.protocol.errors import KafkaError

_DURATION: Final = re.compile(
    r"by_duration:\+?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{0,9}))?S)?)?", re.IGNORECASE
)


Found: TypeAlias = Callable[[int | KafkaError], None]
"""Called with the first offset that a group is given, or with why there is none: KAFKA_STORAGE_ERROR or
CORRUPT_MESSAGE."""


class StartOffsets:
    """Finds where groups begin: one search by time after the other, as each may hold megabytes.

    Args:
        expansions: where batches wait that expand to much.
    """

    def __init__(self, turns: Turns, expansions: Line) -> None:
        self._turns = turns
        self._expansions = expansions
        self._searches = Line(1)

    def find(self, log: Log, reset: str, now: int, found: Found) -> None:
        """Finds the first offset that a group is given.

        Args:
            reset: "earliest", "latest" (what is appended from now on), or "by_duration:" with an ISO 8601 duration: the
                first record that isn't older; if there is none, as "latest".
            now: ms since 1970.

        Raises:
            ValueError: `reset` is something else.
        """
        if reset == "earliest":
            found(log.log_start_offset)
        elif reset == "latest":
            found(log.high_watermark)
        else:
            self._turns.run(self._search(log, max(0, now - duration_ms(reset))), found)

    def _search(self, log: Log, timestamp: int) -> Slices[int | KafkaError]:
        yield from self._searches.wait()
        try:
            with Expansion(self._expansions) as expansion:
                found = yield from log.search_timestamp(timestamp, expand=expansion.expand)
        except KafkaError as error:
            return error
        finally:
            self._searches.leave()
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
