"""How some aggregates merge two states value by value, which needs no grouping: so Arrow can do it beside the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Columnwise", "Fold"]


class Fold(StrEnum):
    """What two values of a state column make. A null changes nothing."""

    SUM = "sum"
    COUNT = "count"  # a sum, and 0 of nulls alone
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Columnwise:
    """The same as an aggregate's `merge` and `finish`, for one partial and one prior state.

    Attributes:
        folds: of each state column, in their order.
        mean: whether the result is the first state column divided by the second, null where that is 0; else it is the
            only one.
    """

    folds: tuple[Fold, ...]
    mean: bool = False
