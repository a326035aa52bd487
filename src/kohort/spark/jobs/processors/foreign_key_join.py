"""Joins two tables by a foreign key: columns of the left one that are the key of the right one.

Three processors, of which each keeps its part by its own key:

| Processor | by | it keeps | it gives |
| --- | --- | --- | --- |
| `SubscriptionsProcessor` | left key | the foreign key | numbered left upserts; subscriptions and their ends |
| `AnswersProcessor` | foreign key | the right row, subscribers | the right row to each, under its number |
| `ResultsProcessor` | left key | the left row, its number | joined rows |

Answers to a left row come from tasks of several foreign keys when that changes, so an older one may come after a newer
one. Numbers tell them apart: a left row has a new one with each upsert, and takes answers under that one alone. It
comes before these, since it is written in one transaction with its subscription. What a right row's change gives to
subscribers under older numbers is lost with them, but the newer subscription is answered with it, too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.drop_reasons import NO_KEY
from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers
from kohort.spark.jobs.processors.states import TASK_KEY, State
from kohort.spark.jobs.processors.table_rows import TableRows, flags, last_marked, last_of_groups, side_numbers, valid
from kohort.spark.program.internal_columns import DELETED
from kohort.spark.program.operations import LEFT, RIGHT, SIDE
from kohort.spark.program.table_operations import (
    COUNTER,
    FOREIGN,
    FOUND,
    GIVEN,
    NUMBER,
    SUBSCRIBERS,
    ForeignKeyAnswers,
    ForeignKeyResults,
    ForeignKeySubscriptions,
)

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SubscriptionsProcessor:
    """The first step: left rows by their own key.

    Attributes:
        output: the left columns, `NUMBER`, `SIDE` (0: the upsert itself; 1: for its foreign key) and `_deleted`.
    """

    step: ForeignKeySubscriptions
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        keyed = valid(rows.columns, self.step.key)
        groups, keys = group_numbers(rows.keys)
        deleted = flags(rows.columns[DELETED])
        state, own = task.states[FOREIGN], rows.columns.select(self.step.foreign)
        unbound = deleted | ~valid(own, self.step.foreign)
        bound = TableRows.upserted(state, keys, groups, own.rename_columns(state.columns.names), keyed, unbound)
        left = np.flatnonzero(keyed)
        numbers = np.zeros(len(groups), np.int64)
        numbers[left] = self._numbered(task.states[COUNTER], len(left))
        before, after = bound.take(bound.before), bound.take(bound.after)
        ended = np.flatnonzero(keyed & (bound.before >= 0) & (~_same(before, after) | (bound.after < 0)))
        begun = np.flatnonzero(keyed & (bound.after >= 0))
        of = np.concatenate([left, ended, begun])
        columns = {name: rows.columns[name].take(pa.array(of)) for name in self.output.names[:-3]}
        for place, name in enumerate(self.step.foreign):
            if name not in self.step.key:
                old = before.column(place).take(pa.array(ended))
                new = rows.columns[name]
                columns[name] = pa.chunked_array(
                    [*new.take(pa.array(left)).chunks, *old.cast(new.type).chunks, *new.take(pa.array(begun)).chunks],
                    new.type,
                )
        gone = np.concatenate([deleted[left], np.ones(len(ended), bool), np.zeros(len(begun), bool)])
        sides = np.repeat(np.array([0, 1], np.int32), [len(left), len(ended) + len(begun)])
        columns |= {NUMBER: pa.array(numbers[of]), SIDE: pa.array(sides), DELETED: pa.array(gone)}
        table = pa.table(columns).select(self.output.names)
        order = pa.array(np.argsort(of, kind="stable"))
        return Made(table.take(order), pa.array(of).take(order), dropped=((NO_KEY, int((~keyed).sum())),))

    @staticmethod
    def _numbered(state: State, count: int) -> _Ints:
        """So many new numbers: greater than all that the task has given before."""
        found = state.get(TASK_KEY).rows[NUMBER].to_pylist()
        first = found[0] if found else 0
        state.put(TASK_KEY, pa.table({NUMBER: pa.array([first + count], pa.int64())}))
        return np.arange(first, first + count)


@dataclass(frozen=True)
class AnswersProcessor:
    """The second step: subscriptions, and right rows, by the foreign key.

    Of an epoch only the end is answered: to all subscribers of a row that has changed, and else to new ones.

    Attributes:
        output: the left key's columns, `NUMBER`, the right columns, and `FOUND`: whether there is a right row.
    """

    step: ForeignKeyAnswers
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        keyed = valid(rows.columns, self.step.on)
        groups, keys = group_numbers(rows.keys)
        rights = side_numbers(rows.columns) == 1
        deleted = flags(rows.columns[DELETED])
        table = TableRows.upserted(task.states[RIGHT], keys, groups, rows.columns, keyed & rights, deleted)
        last = np.zeros(len(keys), np.int64)
        last[groups] = np.arange(len(groups))  # the last row of each group
        changed = np.zeros(len(keys), bool)
        changed[groups[keyed & rights]] = True

        state = task.states[SUBSCRIBERS]
        new = np.flatnonzero(keyed & ~rights)
        names = state.columns.names
        own = rows.columns.select(names).take(pa.array(new))
        entries = state.entry_keys(rows.keys.take(pa.array(new)), own)
        codes, distinct = group_numbers(entries)
        latest = last_of_groups(codes, np.arange(len(new)))
        state.delete(distinct.take(pa.array(codes[latest][deleted[new][latest]])))
        begun = latest[~deleted[new][latest]]
        state.put(distinct.take(pa.array(codes[begun])), own.take(pa.array(begun)))

        # Subscribers from before, of rows that have changed, unless they are among the new ones.
        some = np.flatnonzero(changed)
        kept = state.entries(keys.take(pa.array(some)))
        theirs = state.entry_keys(keys.take(pa.array(some[kept.groups])), kept.rows)
        old = np.flatnonzero(pc.invert(pc.is_in(theirs, value_set=distinct)).to_numpy(zero_copy_only=False))
        subscribers = pa.concat_tables(
            [kept.rows.take(pa.array(old)), own.take(pa.array(begun)).cast(kept.rows.schema)]
        )
        of = last[np.concatenate([some[kept.groups[old]], groups[new[begun]]])]
        found = table.after[of]
        columns = [*subscribers.columns, *table.take(found).columns, pa.array(found >= 0)]
        return Made(
            pa.Table.from_arrays(columns, names=self.output.names), pa.array(of),
            dropped=((NO_KEY, int((~keyed).sum())),),
        )  # fmt: skip


@dataclass(frozen=True)
class ResultsProcessor:
    """The third step: left rows, and answers, by the left key.

    Attributes:
        output: the columns of what it gives: the left ones, the right ones, `_deleted`.
    """

    step: ForeignKeyResults
    output: pa.Schema

    def process(self, rows: Rows, task: TaskState) -> Made:
        keyed = valid(rows.columns, self.step.key)
        groups, keys = group_numbers(rows.keys)
        lefts = side_numbers(rows.columns) == 0
        deleted, found = flags(rows.columns[DELETED]), flags(rows.columns[FOUND])
        numbers = rows.columns[NUMBER].combine_chunks().to_numpy(zero_copy_only=False)
        state = task.states[LEFT]
        kept = state.get(keys)
        own = rows.columns.append_column(GIVEN, pa.nulls(len(groups), pa.bool_()))
        table = TableRows.following(kept, groups, own, keyed & lefts, deleted)
        current = table.take(table.after)
        answers = ~lefts & (pc.fill_null(current[NUMBER].combine_chunks(), -1).to_numpy() == numbers)
        bound = valid(current, self.step.foreign)
        # The others wait for their answers, or are answers to rows as they were before.
        settled = keyed & (answers | (lefts & (deleted | ~bound)))
        exists = settled & (table.after >= 0) & (found | (self.step.how == "left"))

        at_first = np.zeros(len(keys), bool)
        at_first[kept.groups] = flags(kept.rows[GIVEN])
        changed = last_marked(groups, settled, own=False)
        before = np.where(changed >= 0, exists[changed], at_first[groups])
        out = np.flatnonzero(settled & (exists | before))
        self._keep(state, keys, groups, table, keyed & (lefts | settled), np.where(settled, exists, before))

        there = exists[out]
        answered = pa.array(out, mask=~(there & found[out]))
        parts = [
            rows.columns.select(self.step.key).take(pa.array(out)),
            table.take(np.where(there, table.after[out], -1)).select(self.step.left),
            rows.columns.select(self.step.right).take(answered),
        ]
        columns = [column for part in parts for column in part.columns]
        made = pa.Table.from_arrays([*columns, pa.array(~there)], names=self.output.names)
        return Made(made, pa.array(out), dropped=((NO_KEY, int((~keyed).sum())),))

    @staticmethod
    def _keep(state: State, keys: pa.Array, groups: _Ints, table: TableRows, touched: _Bools, given: _Bools) -> None:
        """Keeps left rows as they are last, and whether the result has a row for them."""
        last = last_of_groups(groups, np.flatnonzero(touched))
        gone, left = last[table.after[last] < 0], last[table.after[last] >= 0]
        state.delete(keys.take(pa.array(groups[gone])))
        rows = table.take(table.after[left])
        rows = rows.set_column(rows.column_names.index(GIVEN), GIVEN, pa.array(given[left]))
        state.put(keys.take(pa.array(groups[left])), rows)


def _same(one: pa.Table, other: pa.Table) -> _Bools:
    """Which rows have the same values; none where one is null."""
    same = np.ones(one.num_rows, bool)
    for first, second in zip(one.columns, other.columns, strict=True):
        same &= flags(pc.equal(first, second))
    return same
