"""Columns that aggregates name, as far as they can be checked where they are written."""

from __future__ import annotations

from collections.abc import Collection

from kohort.spark.program.aggregates.base import Aggregation
from kohort.spark.program.aggregates.filtered import Filtered
from kohort.spark.program.aggregates.identity import is_kohorts
from kohort.spark.program.known_columns import check_reference, check_text


def check_columns(what: str, aggregation: Aggregation, known: Collection[str], where: str) -> None:
    """Refuses an aggregate of a misspelt column, or with one in its condition; users' own are left to Spark.

    Args:
        what: how messages call it, as "aggregate('delays', n=…)".
        known: the columns that its rows have.
        where: whose columns these are, as "stream 'orders'".

    Raises:
        ProgramError: as of `check_text`.
    """
    if isinstance(aggregation, Filtered):
        if isinstance(aggregation.condition, str):
            check_text(f"{what}: condition", aggregation.condition, known, where)
        aggregation = aggregation.of
    if is_kohorts(aggregation):
        for given in (getattr(aggregation, each, None) for each in ("of", "by")):
            if isinstance(given, str):
                check_reference(what, given, known, where)
