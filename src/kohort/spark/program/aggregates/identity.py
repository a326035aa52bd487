"""The identity of an aggregation: whether it can go on with the state that another one has left."""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql.types import DataType

from kohort.spark.internals import expression_text
from kohort.spark.program.aggregates.custom import CustomAggregation

if TYPE_CHECKING:
    from kohort.spark.program.aggregates.base import Aggregation

__all__ = ["expressions", "identity", "is_kohorts"]


def identity(aggregation: Aggregation) -> list[Any]:
    """What makes state unreadable when it changes, beside the state's types, as JSON.

    Of Kohort's own aggregations these are the parameters; of users' classes the version, and the parameters that are
    plain values. Nothing that Spark prints is in it, so another version of Spark never orphans state.

    Args:
        aggregation: bound to its rows.
    """
    kind = type(aggregation).__name__
    if isinstance(aggregation, CustomAggregation):
        return [kind, aggregation.version]
    parameters = [(each.name, getattr(aggregation, each.name)) for each in _fields(aggregation)]
    if is_kohorts(aggregation):
        return [kind, *([name, _parameter(value)] for name, value in parameters)]
    return [kind, aggregation.version, *([name, _parameter(value)] for name, value in parameters if _is_plain(value))]


def expressions(aggregation: Aggregation) -> list[str]:
    """The user's expressions, as Spark prints them: only good for a hint, since that may change without their meaning.

    Args:
        aggregation: bound to its rows.
    """
    if is_kohorts(aggregation):
        given = (getattr(aggregation, each.name) for each in _fields(aggregation))
        return [expression_text(each) for each in given if isinstance(each, Column)]
    # `finish` makes results, which aren't kept.
    columns = [*aggregation.partial("s"), *aggregation.merge("s"), *aggregation.settled("s")]
    return [expression_text(column) for _, column in columns]


def is_kohorts(aggregation: Aggregation) -> bool:
    """Whether it is one of those that come with Kohort, of whose attributes it is known what they are."""
    return type(aggregation).__module__.startswith(f"{__package__}.") and not isinstance(aggregation, CustomAggregation)


def _fields(aggregation: Aggregation) -> tuple[Field[Any], ...]:
    return fields(aggregation) if is_dataclass(aggregation) else ()


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float, DataType))


def _parameter(value: object) -> Any:
    if isinstance(value, Column):
        return ["expression"]
    if isinstance(value, (tuple, list)):
        return [_parameter(each) for each in value]
    return value.simpleString() if isinstance(value, DataType) else value
