"""Columns of Kohort's own, carried past what a transform selects.

A row's partition, its record's time and the like are columns beside the user's. A transform that says
`select("origin", "delay")` leaves them out without meaning to. So its plan is rebuilt: whatever passes rows on one by
one passes these columns on with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kohort.spark.internals import Attribute, NodeName, PlanNode, analyzed, frame_of
from kohort.spark.program.compiled import PARTITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["carried", "transformed"]

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
"""Nodes whose output has all columns of (at least) one child. Projections and unions are told what to pass on."""


def transformed(rows: DataFrame, function: Callable[[DataFrame], DataFrame], hidden: Collection[str]) -> DataFrame:
    """What a transform makes of rows, with the columns that it isn't to lose: `hidden`, which it doesn't see, and
    `_partition`, which it does.

    Raises:
        whatever the function does.
    """
    unseen = [name for name in rows.columns if name in hidden]
    return carried(function(rows.drop(*unseen) if unseen else rows), rows, [PARTITION, *unseen])


def carried(made: DataFrame, rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """What a transform made of rows, with those of their columns `names` that it has left out, at the end.

    They are lost where rows go through something that can't be looked into: `mapInPandas`, `mapInArrow`, a union with
    other rows.
    """
    lost = [name for name in names if name in rows.columns and name not in made.columns]
    if not lost:
        return made
    source = analyzed(rows)
    places = {each.name: place for place, each in enumerate(source.output) if each.name in lost}
    plan, _ = _Carrier(source, places).carry(analyzed(made))
    return frame_of(plan)


_Columns = Mapping[str, Attribute]
"""By name."""


class _Carrier:
    """Rebuilds plans so that columns of their source are in their output.

    Args:
        source: the plan that the columns are from.
        places: which ones, by name, and where they are in its output.
    """

    def __init__(self, source: PlanNode, places: Mapping[str, int]) -> None:
        self._source = source
        self._places = places

    def carry(self, node: PlanNode) -> tuple[PlanNode, _Columns]:
        """The plan rebuilt, and the columns as they are in its output; none where they are lost."""
        if node.same_result(self._source):  # in a union with itself one side has other ids
            return node, {name: node.output[place] for name, place in self._places.items()}
        name = node.name
        if not node.children or (name not in _PASSING and name not in (NodeName.PROJECT, NodeName.UNION)):
            return node, {}
        carried = [self.carry(child) for child in node.children]
        if name == NodeName.UNION:
            return self._union(node, carried)
        columns = next((found for _, found in carried if found), {})
        if not columns:
            return node, {}
        node = node.with_children([child for child, _ in carried])
        there = {each.id for each in node.output}
        if name == NodeName.PROJECT:
            return node.with_columns([each for each in columns.values() if each.id not in there]), columns
        return node, {name: each for name, each in columns.items() if each.id in there}

    def _union(self, node: PlanNode, carried: Sequence[tuple[PlanNode, _Columns]]) -> tuple[PlanNode, _Columns]:
        """A union of the same stream several times: each side has the columns in the same places, by ids of its own."""
        if not all(found for _, found in carried):
            return node, {}
        sides = []
        for child, found in carried:
            ids = {each.id for each in found.values()}
            own = [each for each in child.output if each.id not in ids]
            side = frame_of(child.projected([*own, *(found[name] for name in self._places)]))
            # A column that replaces one of its name has an id of its own.
            for name in self._places:
                side = side.withColumn(name, side[name])
            sides.append(analyzed(side))
        union = node.with_children(sides)
        return union, dict(zip(self._places, union.output[-len(self._places) :], strict=True))
