"""What tasks with several stores make of records: joins, sessions and timers, pure. Jobs ask, and so does the oracle.

Each takes what the stores have and gives what changes in them, a value of None taking a row out, and what is put out.
It depends on all that a task has to have after a crash: every store, how far stream time was, and no record twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from tests.simulation.runtime.logs import Record

NEAR_MS: Final = 60
"""Rows of both sides that are no further apart are a pair."""
GAP_MS: Final = 40
GRACE_MS: Final = 100

Rows: TypeAlias = Mapping[str, int]


class Read(NamedTuple):
    """What a task reads in an epoch.

    Attributes:
        records: with their offsets.
        stream_time: with these, in ms; None: the task has never read any.
        now: timers of the clock up to there are due, in ms.
    """

    records: Sequence[tuple[int, Record]]
    stream_time: int | None
    now: int


@dataclass
class Change:
    """What comes of an epoch.

    Attributes:
        rows: by store.
        out: what is put out.
    """

    rows: dict[str, dict[str, int | None]] = field(default_factory=dict)
    out: list[Record] = field(default_factory=list)


Program: TypeAlias = Callable[[Mapping[str, Rows], Read], Change]


class _Store:
    """A store's rows as they are in the course of an epoch."""

    def __init__(self, before: Rows) -> None:
        self.rows = dict(before)
        self.changed: dict[str, int | None] = {}

    def put(self, key: str, value: int) -> None:
        self.rows[key] = self.changed[key] = value

    def delete(self, key: str) -> int:
        self.changed[key] = None
        return self.rows.pop(key)


def joined(stores: Mapping[str, Rows], read: Read) -> Change:
    """Pairs of both sides' rows; left rows that have none when both sides have come further.

    left, right: times of rows. clock: how far each side has come. unmatched: times of left rows without a pair.
    """
    sides = {name: _Store(stores[name]) for name in ("left", "right")}
    clock, unmatched = _Store(stores["clock"]), _Store(stores["unmatched"])
    out = []
    for offset, record in read.records:
        assert record.source is not None
        side, other = ("left", "right") if record.source[0].topic == "in" else ("right", "left")
        row = f"{record.key}/{offset:06}"
        pairs = {
            key: at
            for key, at in sides[other].rows.items()
            if key.startswith(f"{record.key}/") and abs(at - record.at) <= NEAR_MS
        }
        out += [Record(record.key, pair_of(side, record.at, at), record.at) for at in pairs.values()]
        sides[side].put(row, record.at)
        if side == "left" and not pairs:
            unmatched.put(row, record.at)
        elif side == "right":
            for key in sorted(pairs.keys() & unmatched.rows.keys()):
                unmatched.delete(key)
        clock.put(side, max(record.at, clock.rows.get(side, 0)))
        reached = min(clock.rows.get("left", 0), clock.rows.get("right", 0))
        for key in sorted(key for key, at in unmatched.rows.items() if at + NEAR_MS + GRACE_MS < reached):
            out.append(Record(record.key, -1, unmatched.delete(key)))
    found = {**sides, "clock": clock, "unmatched": unmatched}
    return Change({name: store.changed for name, store in found.items()}, out)


def pair_of(side: str, at: int, other: int) -> int:
    """A pair as a number: the left row's time and the right one's."""
    left, right = (at, other) if side == "left" else (other, at)
    return left * 1_000_000 + right


def counted_in_sessions(stores: Mapping[str, Rows], read: Read) -> Change:
    """Totals of sessions, put out once when stream time has passed them.

    totals: of sessions, by key and start. ends: times of their last rows.
    """
    totals, ends = _Store(stores["totals"]), _Store(stores["ends"])
    for _, record in read.records:
        start, end, total = record.at, record.at, record.value
        assert total is not None
        for row in sorted(totals.rows):
            key, began = row.split("@")
            if key == record.key and int(began) - GAP_MS <= end and start <= ends.rows[row] + GAP_MS:
                start, end = min(start, int(began)), max(end, ends.delete(row))
                total += totals.delete(row)
        totals.put(f"{record.key}@{start:07}", total)
        ends.put(f"{record.key}@{start:07}", end)
    out = []
    for row, end in sorted(ends.rows.items()):
        if read.stream_time is not None and end + GAP_MS + GRACE_MS < read.stream_time:
            ends.delete(row)
            key, began = row.split("@")
            out.append(Record(key, totals.delete(row), int(began)))
    return Change({"totals": totals.changed, "ends": ends.changed}, out)


def timed(stores: Mapping[str, Rows], read: Read) -> Change:
    """Each record once more, at the time of the clock that its value says.

    timers: times, by time and record.
    """
    timers = _Store(stores["timers"])
    for offset, record in read.records:
        assert record.value is not None
        timers.put(f"{record.value:015}/{record.key}/{offset}", record.value)
    due = sorted(row for row, at in timers.rows.items() if at <= read.now)
    return Change({"timers": timers.changed}, [Record(row.split("/")[1], timers.delete(row)) for row in due])


PROGRAMS: Final[Mapping[str, tuple[Program, tuple[str, ...]]]] = {
    "join": (joined, ("left", "right", "clock", "unmatched")),
    "sessions": (counted_in_sessions, ("totals", "ends")),
    "timers": (timed, ("timers",)),
}
"""Programs by kind of application, with the names of their stores."""
