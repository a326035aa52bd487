"""Which records a page of records shows: where it begins in each partition, and where it ends."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from kohort.client.types import TopicPartition

DEFAULT_COUNT: Final = 50
MOST_COUNT: Final = 500
"""Records of a page."""

_MOST_MS: Final = 253_402_300_799_999  # the year 9999


class ChoiceError(ValueError):
    """The parameters of a page make no sense: says which, and what is wanted."""


class Where(enum.StrEnum):
    """Where a page of records begins."""

    END = "end"
    OFFSET = "offset"
    TIME = "time"


class OffsetRange(NamedTuple):
    """Offsets of a partition: from `start`, and none from `stop` on.

    Attributes:
        first, end: what the partition has.
    """

    start: int
    stop: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class RecordChoice:
    """Which records are wanted.

    Attributes:
        partition: their partition; None for all.
        where: whether the last ones, those from an offset, or from a time.
        value: the offset, or the time in ms since 1970.
        count: how many at most.
        positions: where another page has come to, by partition: where this one begins, or from the end ends.
    """

    partition: int | None = None
    where: Where = Where.END
    value: int = 0
    count: int = DEFAULT_COUNT
    positions: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> RecordChoice:
        """What a page's parameters say.

        Raises:
            ChoiceError: a parameter makes no sense.
        """
        partition = fields.get("partition", "").strip()
        where = fields.get("from", "") or Where.END
        if where not in Where.__members__.values():
            raise ChoiceError(f"records are shown from {', '.join(Where)}, not from {where!r}")
        positions = parse_positions(fields.get("at", ""))
        value = 0
        if where == Where.OFFSET:
            value = _whole(fields.get("offset", "").strip() or "0", "the offset")
        elif where == Where.TIME and not positions:
            value = parse_time(fields.get("time", ""))
        count = _whole(fields.get("count", "").strip() or str(DEFAULT_COUNT), "the number of records")
        return cls(
            _whole(partition, "the partition") if partition else None,
            Where(where),
            value,
            min(max(1, count), MOST_COUNT),
            positions,
        )


def parse_time(text: str) -> int:
    """A time as a form or a person gives it, in ms since 1970; without a zone it's UTC.

    Raises:
        ChoiceError: it's none.
    """
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) > 8:
        return min(int(text[:18]), _MOST_MS)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ChoiceError(f"{text!r} is no time; 2013-01-01T05:00 is one, in UTC, or ms since 1970") from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return max(0, int(moment.timestamp() * 1000))


def parse_positions(text: str) -> dict[int, int]:
    """Offsets by partition, as `positions_text` writes them.

    Raises:
        ChoiceError: they are none.
    """
    found = {}
    for each in text.split(",") if text else ():
        partition, _, offset = each.partition(":")
        found[_whole(partition, "the partition")] = _whole(offset, "the offset")
    return found


def positions_text(positions: Mapping[int, int]) -> str:
    """Offsets by partition, as a page's parameter: 0:17,1:4."""
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(positions.items()))


def ranges(
    choice: RecordChoice,
    ends: Mapping[TopicPartition, tuple[int, int]],
    times: Mapping[TopicPartition, int] | None = None,
    window: int | None = None,
) -> dict[TopicPartition, OffsetRange]:
    """What to read of each partition; those of which there is nothing are left out.

    Args:
        choice: what is wanted; so many of each partition, of which the page then takes the first, or the last.
        ends: the first offset of each partition, and the one after the last.
        times: where it is from a time: the first offset of each partition that isn't older; -1 for none.
        window: offsets of each partition to look at from the end; None for as many as are wanted.
    """
    found = {}
    for at, (first, end) in ends.items():
        stop = end
        position = choice.positions.get(at.partition)
        match choice.where:
            case Where.END:
                stop = end if position is None else min(position, end)
                start = stop - (choice.count if window is None else window)
            case Where.OFFSET:
                start = choice.value if position is None else position
            case Where.TIME if position is not None:
                start = position
            case Where.TIME:
                start = (times or {}).get(at, -1)
                start = end if start < 0 else start
        start = max(first, start)
        if start < stop:
            found[at] = OffsetRange(start, stop, first, end)
    return found


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ChoiceError(f"{what} is a whole number, not {text!r}")
    return int(text)
