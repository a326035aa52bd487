"""Which columns of its input a plan uses: asked of Spark's optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kohort.spark.program.compiled import PARTITION
from kohort.spark.program.errors import ProgramError

_ALL_FIELDS: Final = 100_000


def used_columns(spark: SparkSession, schema: StructType, build: Callable[[DataFrame], DataFrame]) -> frozenset[str]:
    """The names in `schema` that `build`'s result depends on; more of them where that can't be seen.

    Raises:
        ProgramError: it keeps rows, so that a plan would give those of an earlier epoch again.
    """
    source = spark.range(1).mapInArrow(_nothing, schema)
    return frozenset(_used(build(source)._jdf.queryExecution().optimizedPlan(), None))


def _used(node: Any, above: frozenset[int] | None) -> frozenset[str]:
    """What is used of the sources under a node, where its parents use the columns with the ids `above`; None: all.

    Names wouldn't do instead of ids: an expression has a column's name as the user wrote it, in whatever case.
    """
    name = node.nodeName()
    children = [node.children().apply(number) for number in range(node.children().size())]
    if name == "MapInArrow" and len(children) == 1 and children[0].nodeName() == "Range":
        return frozenset(each.name() for each in _each(node.output()) if above is None or _id(each) in above)
    if _keeps_rows(node):
        raise ProgramError(
            "a transform keeps rows, by cache(), persist() or a checkpoint: those of one epoch would come again in the "
            "next. Leave it out; what is kept of other DataFrames is no harm"
        )
    if name in ("Project", "Aggregate"):
        above = _references(node)
    elif name == "Filter":
        above = None if above is None else above | _references(node)
    else:
        above = None  # where less is enough, the optimizer has put a projection below
    return frozenset(found for child in children for found in _used(child, above))


def _keeps_rows(leaf: Any) -> bool:
    """Whether these are rows of the stream, which `_partition` tells from others."""
    name = leaf.nodeName()
    if name == "InMemoryRelation":
        plan = leaf.cacheBuilder().cachedPlan()
        return f"{PARTITION}#" in plan.treeString(True, False, _ALL_FIELDS, False, False)
    return name == "LogicalRDD" and any(each.name() == PARTITION for each in _each(leaf.output()))


def _references(node: Any) -> frozenset[int]:
    return frozenset(map(_id, _each(node.references().toSeq())))


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stands for a source that is never read, unless a transform runs a job."""
    for _ in batches:
        pass
    return iter(())
