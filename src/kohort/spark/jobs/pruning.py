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
    plan = build(source)._jdf.queryExecution().optimizedPlan()
    everything = frozenset(schema.names)
    return frozenset(_used(plan, everything, everything)) & everything


def _used(node: Any, above: frozenset[str], everything: frozenset[str]) -> frozenset[str]:
    """What is used of the sources under a node, where its parents use `above` of it."""
    name = node.nodeName()
    children = [node.children().apply(number) for number in range(node.children().size())]
    if name == "MapInArrow" and len(children) == 1 and children[0].nodeName() == "Range":
        return above
    if name in ("Project", "Aggregate"):
        above = _references(node)
    elif name == "Filter":
        above = above | _references(node)
    else:
        above = everything  # where less is enough, the optimizer has put a projection below
    found: frozenset[str] = frozenset()
    for child in children:
        found |= _used(child, above, everything)
    return found


def _references(node: Any) -> frozenset[str]:
    references = node.references().toSeq()
    return frozenset(references.apply(number).name() for number in range(references.size()))


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Stands for a source that is never read."""
    yield from batches
