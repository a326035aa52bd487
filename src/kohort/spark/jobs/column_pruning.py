"""Finds which columns of its input a plan uses, by Spark's optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from kohort.spark.errors import ProgramError
from kohort.spark.internals import NodeName, PlanNode, optimized
from kohort.spark.program.internal_columns import PARTITION


def used_columns(spark: SparkSession, schema: StructType, build: Callable[[DataFrame], DataFrame]) -> frozenset[str]:
    """The names in `schema` that `build`'s result depends on; more of them where that can't be seen.

    Raises:
        ProgramError: it keeps rows, so that a plan would give those of an earlier epoch again.
    """
    source = spark.range(1).mapInArrow(_nothing, schema)
    return frozenset(_used(optimized(build(source)), None))


def _used(node: PlanNode, above: frozenset[int] | None) -> frozenset[str]:
    """What is used of the sources under a node, where its parents use the columns with the ids `above`; None: all.

    It goes by ids, not by names: an expression has a column's name as the user wrote it, in any case.
    """
    if node.name == NodeName.MAP_IN_ARROW and [each.name for each in node.children] == [NodeName.RANGE]:
        return frozenset(each.name for each in node.output if above is None or each.id in above)
    if _keeps_rows(node):
        raise ProgramError(
            "a transform keeps rows, by cache(), persist() or a checkpoint: those of one epoch would come again in the "
            "next. Leave it out; what is kept of other DataFrames is no harm"
        )
    if node.name in (NodeName.PROJECT, NodeName.AGGREGATE):
        above = node.references
    elif node.name == NodeName.FILTER:
        above = None if above is None else above | node.references
    else:
        above = None  # where less is enough, the optimizer has put a projection below
    return frozenset(found for child in node.children for found in _used(child, above))


def _keeps_rows(leaf: PlanNode) -> bool:
    """Whether the leaf has kept rows of the stream: only those have `_partition`."""
    if leaf.name == NodeName.CACHED:
        return leaf.cached_plan.mentions(PARTITION)
    return leaf.name == NodeName.RDD and any(each.name == PARTITION for each in leaf.output)


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stands for a source that is never read, unless a transform runs a job."""
    for _ in batches:
        pass
    return iter(())
