"""How some aggregates merge states value by value: so Arrow can do it, beside the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["Columnwise", "Fold"]


class Fold(StrEnum):
    """What two values of a state column make. A null changes nothing."""

    SUM = "sum"
    COUNT = "count"  # a sum, and 0 of nulls alone
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Columnwise:
    """The same as an aggregate's `partial`, `merge` and `finish`.

    Attributes:
        row: the state columns of a single row, as expressions over it, in their order; the aggregate casts them.
        folds: what two values of each make.
        mean: whether the result is the first state column divided by the second, null where that is 0; else it is the
            only one.
    """

    row: tuple[Column, ...]
    folds: tuple[Fold, ...]
    mean: bool = False
