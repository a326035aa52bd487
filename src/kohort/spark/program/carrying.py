"""Columns of Kohort's own, carried past what a transform selects.

A row's partition, its record's time and the like are columns beside the user's. A transform that says
`select("origin", "delay")` leaves them out without meaning to. So its plan is rebuilt: whatever passes rows on one by
one passes these columns on with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kohort.spark.program.compiled import PARTITION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["carried", "transformed"]

_PASSING: Final = frozenset(
    {"CollectMetrics", "Filter", "Generate", "Join", "LateralJoin", "Repartition", "RepartitionByExpression"}
    | {"ResolvedHint", "Sample", "Sort", "SubqueryAlias", "View", "WithCTE"}
)
"""Nodes whose output has all columns of (at least) one child. `Project` and `Union` are told what to pass on."""


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
    from pyspark.sql import DataFrame

    lost = [name for name in names if name in rows.columns and name not in made.columns]
    if not lost:
        return made
    session = rows.sparkSession
    source = rows._jdf.queryExecution().analyzed()
    places = {each.name(): place for place, each in enumerate(_each(source.output())) if each.name() in lost}
    plan, _ = _Carrier(session, source, places).carry(made._jdf.queryExecution().analyzed())
    return DataFrame(_dataset(session, plan), session)


_Columns = Mapping[str, Any]
"""Attributes by name."""


class _Carrier:
    """Rebuilds plans so that columns of their source are in their output.

    Args:
        session: Spark's.
        source: the plan that the columns are from.
        places: which ones, by name, and where they are in its output.
    """

    def __init__(self, session: Any, source: Any, places: Mapping[str, int]) -> None:
        self._session = session
        self._logical = session._jvm.org.apache.spark.sql.catalyst.plans.logical
        self._source = source
        self._places = places

    def carry(self, node: Any) -> tuple[Any, _Columns]:
        """The plan rebuilt, and the columns as they are in its output; none where they are lost."""
        if node.sameResult(self._source):  # in a union with itself one side has other ids
            output = node.output()
            return node, {name: output.apply(place) for name, place in self._places.items()}
        name = node.nodeName()
        children = list(_each(node.children()))
        if not children or (name not in _PASSING and name not in ("Project", "Union")):
            return node, {}
        carried = [self.carry(child) for child in children]
        if name == "Union":
            return self._union(node, carried)
        columns = next((found for _, found in carried if found), {})
        if not columns:
            return node, {}
        node = node.withNewChildren(self._sequence([child for child, _ in carried]).toIndexedSeq())
        if name == "Project":
            there = {_id(each) for each in _each(node.output())}
            more = [each for each in columns.values() if _id(each) not in there]
            passed = self._sequence([*_each(node.projectList()), *more])
            return self._logical.Project(passed, node.child()), columns
        there = {_id(each) for each in _each(node.output())}
        return node, {name: each for name, each in columns.items() if _id(each) in there}

    def _union(self, node: Any, carried: Sequence[tuple[Any, _Columns]]) -> tuple[Any, _Columns]:
        """A union of the same stream several times: each side has the columns in the same places, by ids of its own."""
        if not all(found for _, found in carried):
            return node, {}
        sides = []
        for child, found in carried:
            ids = {_id(each) for each in found.values()}
            own = [each for each in _each(child.output()) if _id(each) not in ids]
            plain = self._logical.Project(self._sequence([*own, *(found[name] for name in self._places)]), child)
            # A column that replaces one of its name has an id of its own.
            side = _dataset(self._session, plain)
            for name in self._places:
                side = side.withColumn(name, side.col(name))
            sides.append(side.queryExecution().analyzed())
        union = node.withNewChildren(self._sequence(sides).toIndexedSeq())
        output = list(_each(union.output()))
        return union, dict(zip(self._places, output[-len(self._places) :], strict=True))

    def _sequence(self, values: Sequence[Any]) -> Any:
        jvm = self._session._jvm
        several = jvm.java.util.ArrayList()
        for each in values:
            several.add(each)
        return jvm.scala.jdk.javaapi.CollectionConverters.asScala(several).toList()


def _dataset(session: Any, plan: Any) -> Any:
    return session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())
