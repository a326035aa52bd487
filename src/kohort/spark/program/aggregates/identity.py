"""The identity of an aggregation: whether it can go on with the state that another one has left."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql.types import DataType

from kohort.spark.internals import expression_text
from kohort.spark.program.aggregates.custom import CustomAggregation

if TYPE_CHECKING:
    from kohort.spark.program.aggregates.base import Aggregation

__all__ = ["expressions", "identity"]


def identity(aggregation: Aggregation) -> list[Any]:
    """What makes state unreadable when it changes, beside the state's types, as JSON.

    Of Kohort's own aggregations these are the parameters; of users' the version. Nothing that Spark prints is in it, so
    another version of Spark never orphans state.

    Args:
        aggregation: bound to its rows.
    """
    kind = type(aggregation).__name__
    if not _is_kohorts(aggregation) or not is_dataclass(aggregation):
        return [kind, aggregation.version]
    return [kind, *([each.name, _parameter(getattr(aggregation, each.name))] for each in fields(aggregation))]


def expressions(aggregation: Aggregation) -> list[str]:
    """The user's expressions, as Spark prints them: only good for a hint, since that may change without their meaning.

    Args:
        aggregation: bound to its rows.
    """
    if _is_kohorts(aggregation) and is_dataclass(aggregation):
        given = (getattr(aggregation, each.name) for each in fields(aggregation))
        return [expression_text(each) for each in given if isinstance(each, Column)]
    columns = [*aggregation.partial("s"), *aggregation.merge("s"), ("s", aggregation.finish("s"))]
    return [expression_text(column) for _, column in columns]


def _is_kohorts(aggregation: Aggregation) -> bool:
    return type(aggregation).__module__.startswith(f"{__package__}.") and not isinstance(aggregation, CustomAggregation)


def _parameter(value: object) -> Any:
    if isinstance(value, Column):
        return ["expression"]
    return value.simpleString() if isinstance(value, DataType) else value
