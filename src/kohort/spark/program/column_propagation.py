"""Passes internal columns through transforms that don't select them.

A row's partition, its record's time and so on are columns beside the user's. A transform such as
`select("origin", "delay")` leaves them out. So its plan is rebuilt: each node that passes on rows one by one passes on
these columns with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kohort.spark.internals import Attribute, NodeName, PlanNode, analyzed, frame_of
from kohort.spark.program.internal_columns import PARTITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PASSING: Final = frozenset(
    {
        NodeName.COLLECT_METRICS,
        NodeName.FILTER,
        NodeName.GENERATE,
        NodeName.HINT,
        NodeName.JOIN,
        NodeName.LATERAL_JOIN,
        NodeName.REPARTITION,
        NodeName.REPARTITION_BY,
        NodeName.SAMPLE,
        NodeName.SORT,
        NodeName.SUBQUERY_ALIAS,
        NodeName.VIEW,
        NodeName.WITH_CTE,
    }
)
"""Nodes whose output has all columns of (at least) one child. Projections and unions are rebuilt with more columns."""


def transformed(rows: DataFrame, function: Callable[[DataFrame], DataFrame], hidden: Collection[str]) -> DataFrame:
    """The result of a transform, with the columns that it mustn't lose: `hidden`, which it doesn't see, and
    `_partition`, which it does.

    Raises:
        Exception: whatever the function raises.
    """
    unseen = [name for name in rows.columns if name in hidden]
    return propagated(function(rows.drop(*unseen) if unseen else rows), rows, [PARTITION, *unseen])


def propagated(made: DataFrame, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """The result of a transform (`made`) with those of the columns `names` that it has left out, at the end.

    They are lost where rows go through something that can't be looked into: `mapInPandas`, `mapInArrow`, a union with
    other rows.
    """
    lost = [name for name in names if name in rows.columns and name not in made.columns]
    if not lost:
        return made
    source = analyzed(rows)
    positions = {each.name: position for position, each in enumerate(source.output) if each.name in lost}
    plan, _ = _Propagation(source, positions).rebuild(analyzed(made))
    return frame_of(plan)


_Columns = Mapping[str, Attribute]
"""By name."""


class _Propagation:
    """Rebuilds plans so that columns of their source are in their output.

    Args:
        source: the plan that the columns are from.
        positions: which ones, by name, and where they are in its output.
    """

    def __init__(self, source: PlanNode, positions: Mapping[str, int]) -> None:
        self._source = source
        self._positions = positions

    def rebuild(self, node: PlanNode) -> tuple[PlanNode, _Columns]:
        """The plan rebuilt, and the columns as they are in its output; none where they are lost."""
        if node.same_result(self._source):  # in a union with itself one side has other ids
            return node, {name: node.output[position] for name, position in self._positions.items()}
        name = node.name
        if not node.children or (name not in _PASSING and name not in (NodeName.PROJECT, NodeName.UNION)):
            return node, {}
        rebuilt = [self.rebuild(child) for child in node.children]
        if name == NodeName.UNION:
            return self._union(node, rebuilt)
        columns = next((found for _, found in rebuilt if found), {})
        if not columns:
            return node, {}
        node = node.with_children([child for child, _ in rebuilt])
        there = {each.id for each in node.output}
        if name == NodeName.PROJECT:
            return node.with_columns([each for each in columns.values() if each.id not in there]), columns
        return node, {name: each for name, each in columns.items() if each.id in there}

    def _union(self, node: PlanNode, rebuilt: Sequence[tuple[PlanNode, _Columns]]) -> tuple[PlanNode, _Columns]:
        """A union of the same stream several times: each side has the columns in the same places, by ids of its own."""
        if not all(found for _, found in rebuilt):
            return node, {}
        sides = []
        for child, found in rebuilt:
            ids = {each.id for each in found.values()}
            own = [each for each in child.output if each.id not in ids]
            side = frame_of(child.projected([*own, *(found[name] for name in self._positions)]))
            # A column that replaces one of its name has an id of its own.
            for name in self._positions:
                side = side.withColumn(name, side[name])
            sides.append(analyzed(side))
        union = node.with_children(sides)
        return union, dict(zip(self._positions, union.output[-len(self._positions) :], strict=True))
