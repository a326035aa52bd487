"""Which columns of its input a plan uses: asked of Spark's optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def used_columns(spark: SparkSession, schema: StructType, build: Callable[[DataFrame], DataFrame]) -> frozenset[str]:
    """The names in `schema` that `build`'s result depends on; more of them where that can't be seen."""
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
    if name in ("Project", "Aggregate"):
        above = _references(node)
    elif name == "Filter":
        above = None if above is None else above | _references(node)
    else:
        above = None  # where less is enough, the optimizer has put a projection below
    return frozenset(found for child in children for found in _used(child, above))


def _references(node: Any) -> frozenset[int]:
    return frozenset(map(_id, _each(node.references().toSeq())))


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))


def _id(attribute: Any) -> int:
    return int(attribute.exprId().id())


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stands for a source that is never read."""
    yield from batches
