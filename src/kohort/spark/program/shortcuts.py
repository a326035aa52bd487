"""Shortcuts of a stream's transforms: where, select, with_columns, branch.

Each is a function from DataFrame to DataFrame that messages call by its `label`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kohort.spark.errors import ProgramError
from kohort.spark.internals import column_text
from kohort.spark.program.missing_methods import Advised

if TYPE_CHECKING:
    from typing import Self

    from pyspark.sql import Column, DataFrame

    Expression: TypeAlias = str | Column

__all__ = ["Shortcuts"]


@dataclass(frozen=True, eq=False)
class Shortcut:
    """A transform that a shortcut makes. `label`: as it was written."""

    label: str
    function: Callable[[DataFrame], DataFrame]

    def __call__(self, rows: DataFrame) -> DataFrame:
        return self.function(rows)


class Shortcuts(Advised, ABC):
    """What a stream has beside `transform`, which says it all."""

    @abstractmethod
    def transform(self, function: Callable[[DataFrame], DataFrame]) -> Self:
        """The stream that a function makes of this one."""

    def where(self, condition: Expression) -> Self:
        """The rows of which a condition is true.

        Args:
            condition: as text, "dep_delay > 15", or as Column.

        Raises:
            ProgramError: it is neither.
        """
        _check("where", condition)
        return self.transform(
            Shortcut(f"where({_shown(condition)})", lambda rows: rows.where(_column(rows, condition)))
        )

    def select(self, *columns: Expression) -> Self:
        """The rows with these columns alone.

        Args:
            columns: names, expressions as text, "dep_delay / 60 AS hours", "*" for all, or Columns.

        Raises:
            ProgramError: there are none, or one is neither.
        """
        if not columns:
            raise ProgramError('select needs columns, as .select("origin", "dep_delay / 60 AS hours")')
        for each in columns:
            _check("select", each)
        label = f"select({', '.join(map(_shown, columns))})"
        return self.transform(Shortcut(label, lambda rows: rows.select(*[_column(rows, each) for each in columns])))

    def with_columns(self, columns: Mapping[str, Expression] | None = None, /, **more: Expression) -> Self:
        """The rows with columns more, or others in place of those of the same name.

            flights.with_columns(hours="dep_delay / 60", late=F.col("dep_delay") > 15)

        Args:
            columns: expressions, as text or Column, by name.
            more: the same, where names are words of Python.

        Raises:
            ProgramError: there are none, or one is neither.
        """
        named = {**(columns or {}), **more}
        if not named:
            raise ProgramError('with_columns needs columns, as .with_columns(hours="dep_delay / 60")')
        for each in named.values():
            _check("with_columns", each)
        label = f"with_columns({', '.join(f'{name}=…' for name in named)})"

        def function(rows: DataFrame) -> DataFrame:
            return rows.withColumns({name: _column(rows, each) for name, each in named.items()})

        return self.transform(Shortcut(label, function))

    def branch(self, **conditions: Expression | None) -> dict[str, Self]:
        """Streams by conditions: each row is in the first one whose condition is true of it.

            late, rest = flights.branch(late="dep_delay > 15", rest=None).values()

        Args:
            conditions: by the names of the streams, as text or Column. None, which comes last, takes what none of the
                others takes; without it those rows are left out.

        Raises:
            ProgramError: there are none, or one is neither, or None isn't the last.
        """
        if not conditions:
            raise ProgramError('branch needs conditions, as .branch(late="dep_delay > 15", rest=None)')
        *firsts, _ = conditions.items()
        if early := [name for name, each in firsts if each is None]:
            raise ProgramError(f"branch({early[0]}=None): what takes all the others comes last")
        for each in conditions.values():
            if each is not None:
                _check("branch", each)
        taken: list[Expression] = []
        streams: dict[str, Self] = {}
        for name, condition in conditions.items():
            streams[name] = self.transform(_first_match(name, condition, tuple(taken)))
            if condition is not None:
                taken.append(condition)
        return streams


def _first_match(name: str, condition: Expression | None, taken: Sequence[Expression]) -> Shortcut:
    """The rows of which a condition is true, and none of those before."""

    def function(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        for each in taken:
            rows = rows.where(~F.coalesce(_column(rows, each), F.lit(False)))
        return rows if condition is None else rows.where(_column(rows, condition))

    return Shortcut(f"branch({name}={'None' if condition is None else _shown(condition)})", function)


def _check(what: str, given: object) -> None:
    from pyspark.sql import Column

    if not isinstance(given, (str, Column)):
        raise ProgramError(f"{what} takes texts and Columns, not {given!r}. A function goes into .transform(…)")


def _column(rows: DataFrame, given: Expression) -> Column:
    """A text is a column's name, if there is such a column, or else an expression."""
    from pyspark.sql import functions as F  # noqa: N812

    if not isinstance(given, str):
        return given
    return rows[f"`{given}`"] if given in rows.columns and "`" not in given else F.expr(given)


def _shown(given: Expression) -> str:
    return repr(given) if isinstance(given, str) else column_text(given)
