"""How some aggregates fold rows, and merge two states, value by value: so Arrow can do it beside the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Columnwise", "Fold", "Sketch"]


class Fold(StrEnum):
    """What two values of a state column make. A null changes nothing."""

    SUM = "sum"
    COUNT = "count"  # a sum, and 0 of nulls alone; of rows, how many aren't null
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Sketch:
    """A fold: KLL sketches of Apache DataSketches, which are merged; of rows, the sketch of their values.

    Attributes:
        k: its size.
        whole: whether it is of BIGINT; else of DOUBLE.
    """

    k: int
    whole: bool


@dataclass(frozen=True)
class Columnwise:
    """The same as an aggregate's `partial`, `merge` and `finish`: for rows, or for one partial and one prior state.

    Attributes:
        folds: of each state column, in their order.
        of: what of a row they fold; None: the row itself, whatever is in it.
        mean: whether the result is the first state column divided by the second, null where that is 0; else it is the
            only one.
        quantiles: the result is these of a sketch: one number, or an array of several.
    """

    folds: tuple[Fold | Sketch, ...]
    of: str | Column | None
    mean: bool = False
    quantiles: float | tuple[float, ...] | None = None
