"""Makes changes of a table's upserts: the row before each, and the row after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kohort.spark.jobs.processors.interface import Made, Rows, TaskState
from kohort.spark.jobs.processors.ordering import group_numbers
from kohort.spark.jobs.state_encoding import object_texts
from kohort.spark.program.internal_columns import DELETED, SIGN
from kohort.spark.program.operations import AFTER, BEFORE, CHANGE, KEPT


@dataclass(frozen=True)
class TableChangesProcessor:
    """The store has the last row of each key. An upsert that changes nothing gives nothing.

    Attributes:
        key: the table's key.
        pairs: whether a change is one row, with what was before and after, or one row for each with a sign.
    """

    key: tuple[str, ...]
    pairs: bool

    def process(self, rows: Rows, task: TaskState) -> Made:
        state = task.states[KEPT]
        new = rows.columns.select(state.columns.names).combine_chunks()
        groups, keys = group_numbers(rows.keys)
        prior = state.access.lookup(keys)
        texts = pc.if_else(rows.columns[DELETED].combine_chunks(), None, object_texts(new))

        # The values of before first, one for each key, then those of the rows.
        values = pa.concat_arrays([prior, texts])
        here = len(keys) + np.arange(len(texts))
        order = np.argsort(groups, kind="stable")
        is_first = np.diff(groups[order], prepend=-1) != 0
        before = np.empty(len(texts), np.int64)
        before[order] = np.where(is_first, groups[order], np.roll(here[order], 1))
        was = values.take(pa.array(before))
        there = [each.is_valid().to_numpy(zero_copy_only=False) for each in (was, texts)]
        same = pc.fill_null(pc.equal(was, texts), False).to_numpy(zero_copy_only=False)
        changed = ~same & (there[0] | there[1])

        is_last = np.append(is_first[1:], True)[: len(order)]
        last = order[is_last]
        final = texts.take(pa.array(last))
        moved = pc.invert(pc.fill_null(pc.equal(final, prior), False))
        moved = pc.and_(moved, pc.or_(final.is_valid(), prior.is_valid()))
        state.access.write(keys.filter(moved), final.filter(moved))

        found = prior.is_valid()
        old = state.decoded(prior.filter(found)).cast(new.schema)
        of_prior = np.cumsum(found.to_numpy(zero_copy_only=False)) - 1
        places = np.concatenate([of_prior, len(old) + np.arange(len(texts))])
        both = pa.concat_tables([old, new]) if new.num_columns else None
        if self.pairs:
            return self._pairs(rows, both, np.flatnonzero(changed), places[before], places[here], there)
        minus, plus = (np.flatnonzero(changed & each) for each in there)
        of = np.concatenate([minus, plus])
        signs = np.repeat([-1, 1], [len(minus), len(plus)])
        in_order = np.lexsort([signs, of])
        taken = pa.array(np.concatenate([places[before[minus]], places[here[plus]]])[in_order])
        of = of[in_order]
        columns = self._key(rows, of) | self._values(both, taken)
        return Made(pa.table({**columns, SIGN: pa.array(signs[in_order], pa.int32())}), pa.array(of))

    def _pairs(
        self,
        rows: Rows,
        values: pa.Table | None,
        of: np.ndarray,
        before: np.ndarray,
        after: np.ndarray,
        there: list[np.ndarray],
    ) -> Made:
        was, remains = there[0][of], there[1][of]
        kinds = np.where(was, np.where(remains, "update", "delete"), "insert")
        columns = self._key(rows, of) | {CHANGE: pa.array(kinds.tolist(), pa.string())}
        if values is not None:
            for name, places, valid in ((BEFORE, before[of], was), (AFTER, after[of], remains)):
                taken = self._values(values, pa.array(places, mask=~valid))
                arrays = [each.combine_chunks() for each in taken.values()]
                columns[name] = pa.StructArray.from_arrays(arrays, names=list(taken), mask=pa.array(~valid))
        return Made(pa.table(columns), pa.array(of))

    def _key(self, rows: Rows, of: np.ndarray) -> dict[str, pa.ChunkedArray]:
        taken = rows.columns.select(self.key).take(pa.array(of))
        return dict(zip(taken.column_names, taken.columns, strict=True))

    @staticmethod
    def _values(values: pa.Table | None, places: pa.Array) -> dict[str, pa.ChunkedArray]:
        if values is None:
            return {}
        taken = values.take(places)
        return dict(zip(taken.column_names, taken.columns, strict=True))
