"""What an aggregation is made of, as text: state that another one has left is no state of this one."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Column
from pyspark.sql.types import DataType

from kohort.spark.program.aggregates.base import label
from kohort.spark.program.aggregates.own import Own

if TYPE_CHECKING:
    from kohort.spark.program.aggregates.base import Aggregation, Named

__all__ = ["identity"]

# What differs from one time to the next that the same expression is printed: the numbers of functions' variables (in
# x_1 -> x_1 + 1), where in memory an array is, and, with Python functions, where in which file something was written.
_BOUND: Final = re.compile(r"(?:(\w+|\([\w, ]+\)) ->|UnresolvedNamedLambdaVariable\((?:List\()?(\w+))")
_VARIABLE: Final = re.compile(r"[xyz]_\d+")
_ORIGIN: Final = re.compile(r",? ?Origin\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_ADDRESS: Final = re.compile(r"(\[L?[\w.]+;?)@[0-9a-f]+")


def identity(aggregation: Aggregation) -> list[Any]:
    """What changes with what is aggregated, and else never: it is the same in each process that compiles the program.

    Of Kohort's own aggregations these are the parameters, columns as text; of users' the text of their expressions.

    Args:
        aggregation: bound to its rows.
    """
    kind = type(aggregation).__name__
    ours = type(aggregation).__module__.startswith(f"{__package__}.") and not isinstance(aggregation, Own)
    if ours and is_dataclass(aggregation):
        return [kind, *([each.name, _plain(getattr(aggregation, each.name))] for each in fields(aggregation))]
    expressions = aggregation.partial("s"), aggregation.merge("s"), [("s", aggregation.finish("s"))]
    return [kind, *map(_named, expressions)]


def _named(columns: Named) -> list[list[str]]:
    return [[name, _text(column)] for name, column in columns]


def _plain(value: object) -> Any:
    if isinstance(value, Column):
        return _text(value)
    return value.simpleString() if isinstance(value, DataType) else value


def _text(column: Column) -> str:
    text = _ADDRESS.sub(r"\1", _ORIGIN.sub("", label(column)))
    bound = [name for found in _BOUND.finditer(text) for name in _VARIABLE.findall(found[0])]
    numbers = {name: f"{name[0]}_{number}" for number, name in enumerate(dict.fromkeys(bound))}
    return re.sub(r"\w+", lambda found: numbers.get(found[0], found[0]), text)
