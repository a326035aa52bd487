"""Joins two streams by key and time: each row with the other side's rows of its key whose times are near.

Both sides are rows of one topic, in whose order everything goes: a row is joined with those of the other side that came
before it, and is kept for those that come later. How far time has come is what both sides have reached, the lesser of
their largest times: one side may be read long before the other, as when old records are read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.arrow_key_encoding import group_keys
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.near_rows import Spans, kept_and_new, rows_between
from kohort.spark.jobs.processors.ordering import counted, group_numbers, int64s
from kohort.spark.jobs.processors.states import TASK_KEY, State, at_time, before_time, joined_keys
from kohort.spark.jobs.processors.table_rows import side_numbers, valid
from kohort.spark.jobs.time_bounds import FIRST_MS, LAST_MS
from kohort.spark.program.operations import CLOCK, LEFT, OFFSET_COLUMN, RIGHT, TIME_COLUMN, UNMATCHED, StreamJoin

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_NONE: Final = np.iinfo(np.int64).min


class _Pool(NamedTuple):
    """Rows of one side: those that are kept, then new ones.

    Attributes:
        rows: the side's columns.
        keys: numbers of their groups.
        times: in ms.
        offsets: of their records in the topic.
        arrived: which of the new rows each is; -1 for those that were kept.
    """

    rows: pa.Table
    keys: _Ints
    times: _Ints
    offsets: _Ints
    arrived: _Ints


@dataclass(frozen=True)
class StreamJoinProcessor:
    """A join of two streams.

    Attributes:
        output: the columns of what it gives: those that are joined on, the left side's others, the right side's.
    """

    join: StreamJoin
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        sides = side_numbers(rows.columns)
        times = pc.fill_null(rows.times, _NONE).to_numpy(zero_copy_only=False)
        offsets = int64s(rows.offsets)
        clock = _Clock.read(task.states[CLOCK])
        now = clock.advance(sides, times)
        closes = np.where(sides == 0, times + self.join.after_ms, times + self.join.before_ms) + self.join.grace_ms
        in_time = (times != _NONE) & (closes >= now)
        taken = in_time & valid(rows.columns, self.join.on)
        codes, groups = group_numbers(rows.keys)
        pools = [
            self._pool(side, rows, np.flatnonzero(taken & (sides == side)), groups, codes, times, offsets,
                       sides, taken, task.states[(LEFT, RIGHT)[side]])
            for side in (0, 1)
        ]  # fmt: skip
        left, right = self._pairs(pools, now)
        matched = self._rows(pools, left, right)
        at = np.maximum(pools[0].times[left], pools[1].times[right])
        of = np.maximum(pools[0].arrived[left], pools[1].arrived[right])
        if self.join.keeps:
            matched, at, of = self._with_unmatched(
                pools, (left, right), (matched, at, of), groups, int(clock.now), task.states[UNMATCHED]
            )
            matched, at, of = self._with_keyless(rows, sides, times, in_time & ~taken, (matched, at, of))
        self._keep(pools, groups, clock.now, task)
        clock.write(task.states[CLOCK], self._forget(clock, task))
        late = int(len(in_time) - in_time.sum())
        return Made(matched, pa.array(of, mask=of < 0), late, pa.array(at))

    # Who is joined with whom -----------------------------------------------------------------------------------------

    def _pool(
        self,
        side: int,
        rows: Rows,
        new: _Ints,
        groups: pa.Array,
        codes: _Ints,
        times: _Ints,
        offsets: _Ints,
        sides: npt.NDArray[np.int32],
        taken: _Bools,
        state: State,
    ) -> _Pool:
        """The new rows of a side, and those that were kept and may be near a new one of the other side."""
        others = np.flatnonzero(taken & (sides != side))
        # Rows of this side that are near: a left one is `after` before and `before` behind a right one at most.
        reach = self.join.after_ms, self.join.before_ms
        least, most = reach if side == 0 else reach[::-1]
        near = Spans(codes[others], times[others] - least, times[others] + most)
        columns = rows.columns.append_column(TIME_COLUMN, pa.array(times))
        columns = columns.append_column(OFFSET_COLUMN, pa.array(offsets))
        pool, keys, arrived = kept_and_new(state, groups, near, columns, codes[new], new)
        return _Pool(
            pool,
            keys,
            pool[TIME_COLUMN].to_numpy().astype(np.int64),
            pool[OFFSET_COLUMN].to_numpy().astype(np.int64),
            arrived,
        )

    def _pairs(self, pools: list[_Pool], now: _Ints) -> tuple[_Ints, _Ints]:
        """The rows of both pools that belong together, in the order in which that shows."""
        left, right = pools
        first, count, order = rows_between(
            right.keys, right.times, left.keys, left.times - self.join.before_ms, left.times + self.join.after_ms
        )
        lefts = np.repeat(np.arange(len(left.keys)), count)
        rights = order[np.repeat(first, count) + counted(count)]
        one, other = left.arrived[lefts], right.arrived[rights]
        later = np.maximum(one, other)
        # The one that came first must still have been waiting when the other came.
        closes = np.where(
            one < other, left.times[lefts] + self.join.after_ms, right.times[rights] + self.join.before_ms
        ) + self.join.grace_ms  # fmt: skip
        together = (later >= 0) & (closes >= (now[later] if len(now) else 0))
        lefts, rights, later = lefts[together], rights[together], later[together]
        earlier = np.where(left.arrived[lefts] == later, right.offsets[rights], left.offsets[lefts])
        sorting = np.lexsort([earlier, later])
        return lefts[sorting], rights[sorting]

    def _rows(self, pools: list[_Pool], left: _Ints, right: _Ints) -> pa.Table:
        """The columns of joined rows; -1 for no row of a side."""
        parts = []
        for pool, numbers in zip(pools, (left, right), strict=True):
            parts.append(pool.rows.take(pa.array(numbers, mask=numbers < 0)))
        arrays = [pc.coalesce(parts[0][name], parts[1][name]) for name in self.join.on]
        arrays += [parts[0][name] for name in self.join.left] + [parts[1][name] for name in self.join.right]
        return pa.Table.from_arrays(arrays, names=self.output.names).cast(_nullable(self.output))

    # Rows without a match --------------------------------------------------------------------------------------------

    def _with_unmatched(
        self,
        pools: list[_Pool],
        pairs: tuple[_Ints, _Ints],
        joined: tuple[pa.Table, _Ints, _Ints],
        groups: pa.Array,
        now: int,
        state: State,
    ) -> tuple[pa.Table, _Ints, _Ints]:
        """With rows that nothing can be joined with any more; what still waits, or doesn't, is noted."""
        tables, ats, ofs = [joined[0]], [joined[1]], [joined[2]]
        matched_keys: list[pa.Array] = []
        for side in self.join.keeps:
            pool, numbers = pools[side], pairs[side]
            has_match = np.zeros(len(pool.keys), bool)
            has_match[numbers] = True
            reach = self.join.after_ms if side == 0 else self.join.before_ms
            closes = pool.times + reach + self.join.grace_ms
            new = pool.arrived >= 0
            matched_keys.append(_waiting_keys(groups, pool, np.flatnonzero(has_match & ~new), closes, side))
            over = np.flatnonzero(new & ~has_match & (closes < now))
            alone = np.full(len(over), -1, np.int64)
            tables.append(self._rows(pools, *((over, alone) if side == 0 else (alone, over))))
            ats.append(pool.times[over])
            ofs.append(pool.arrived[over])
            waiting = np.flatnonzero(new & ~has_match & (closes >= now))
            none = np.full(len(waiting), -1, np.int64)
            rows = self._rows(pools, *((waiting, none) if side == 0 else (none, waiting)))
            rows = rows.append_column(TIME_COLUMN, pa.array(pool.times[waiting]))
            state.put(_waiting_keys(groups, pool, waiting, closes, side), rows.rename_columns(state.columns.names))
        gone = pa.concat_arrays(matched_keys)
        gone = gone.filter(state.access.lookup(gone).is_valid())  # most that match had a match before
        state.delete(gone)
        if now != _NONE:
            start, end = before_time(min(now, LAST_MS))
            _, keys, values = state.access.scan(start, end)
            due = pc.invert(pc.is_in(keys, value_set=gone.cast(pa.binary())))
            state.delete(keys.filter(due))
            rows = state.decoded(values.filter(due))
            tables.append(rows.select(rows.column_names[:-1]).rename_columns(self.output.names).cast(tables[0].schema))
            ats.append(rows[TIME_COLUMN].to_numpy().astype(np.int64))
            ofs.append(np.full(rows.num_rows, -1, np.int64))
        return pa.concat_tables(tables), np.concatenate(ats), np.concatenate(ofs)

    def _with_keyless(
        self,
        rows: Rows,
        sides: npt.NDArray[np.int32],
        times: _Ints,
        keyless: _Bools,
        joined: tuple[pa.Table, _Ints, _Ints],
    ) -> tuple[pa.Table, _Ints, _Ints]:
        """With rows that have no key, which nothing is joined with: those of a side whose rows all are given."""
        numbers = np.flatnonzero(keyless & np.isin(sides, self.join.keeps))
        alone = rows.columns.take(pa.array(numbers))
        columns = [alone[name] for name in (*self.join.on, *self.join.left, *self.join.right)]
        table = pa.Table.from_arrays(columns, names=self.output.names).cast(joined[0].schema)
        return (
            pa.concat_tables([joined[0], table]),
            np.concatenate([joined[1], times[numbers]]),
            np.concatenate([joined[2], numbers]),
        )

    # What is kept ----------------------------------------------------------------------------------------------------

    def _keep(self, pools: list[_Pool], groups: pa.Array, now: int, task: TaskState) -> None:
        """Keeps new rows for those that come later, unless time has passed them by already."""
        reaches = self.join.after_ms, self.join.before_ms
        for pool, name, reach in zip(pools, (LEFT, RIGHT), reaches, strict=True):
            state = task.states[name]
            new = np.flatnonzero((pool.arrived >= 0) & (pool.times + reach + self.join.grace_ms >= now))
            keys = state.bucketed(groups.take(pa.array(pool.keys[new])), pa.array(pool.times[new]))
            state.append(keys, pool.rows.take(pa.array(new)), pa.array(pool.offsets[new]))

    def _forget(self, clock: _Clock, task: TaskState) -> int:
        """Takes out buckets whose rows nothing can be joined with any more; up to which time (ms) that is done."""
        if clock.now == _NONE:
            return clock.forgotten
        reach = max(self.join.before_ms, self.join.after_ms) + self.join.grace_ms
        upto = min(clock.now - reach - task.states[LEFT].bucket_ms, LAST_MS)
        if upto <= clock.forgotten:
            return clock.forgotten
        for name in (LEFT, RIGHT):
            state = task.states[name]
            start, end = before_time(upto, clock.forgotten)
            _, keys, _ = state.access.scan(start, end)
            state.delete(keys)
        return upto


@dataclass
class _Clock:
    """How far both sides have come (ms), and up to where rows are forgotten."""

    left: int
    right: int
    forgotten: int

    @classmethod
    def read(cls, state: State) -> _Clock:
        found = state.get(TASK_KEY).rows.to_pylist()
        return cls(**found[0]) if found else cls(_NONE, _NONE, _NONE)

    def write(self, state: State, forgotten: int) -> None:
        state.put(TASK_KEY, pa.table({"left": [self.left], "right": [self.right], "forgotten": [forgotten]}))

    @property
    def now(self) -> int:
        return min(self.left, self.right)

    def advance(self, sides: npt.NDArray[np.int32], times: _Ints) -> _Ints:
        """How far it is at each row, its own time included."""
        reached = []
        for side, before in ((0, self.left), (1, self.right)):
            running = np.maximum.accumulate(np.where(sides == side, times, _NONE)) if len(times) else times
            reached.append(np.maximum(running, before))
        if len(times):
            self.left, self.right = int(reached[0][-1]), int(reached[1][-1])
        now: _Ints = np.minimum(*reached)
        return now


def _waiting_keys(groups: pa.Array, pool: _Pool, numbers: _Ints, closes: _Ints, side: int) -> pa.Array:
    """The keys by which rows wait for a match: by when they stop to."""
    sides = pa.array(np.full(len(numbers), side))
    places = group_keys(["side", "at"], [sides, pa.array(pool.offsets[numbers])])
    named = joined_keys(groups.take(pa.array(pool.keys[numbers])), places)
    return at_time(named, pa.array(np.clip(closes[numbers], FIRST_MS, LAST_MS)))


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
