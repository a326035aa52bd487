"""Shortcuts of a stream's transforms: where, select, with_columns, branch.

Each is a function from DataFrame to DataFrame that messages call by its `label`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from kohort.spark.errors import ProgramError
from kohort.spark.internals import column_text
from kohort.spark.program.known_columns import alias, selected
from kohort.spark.program.missing_methods import Advised

if TYPE_CHECKING:
    from typing import Self

    from pyspark.sql import Column, DataFrame

    Expression: TypeAlias = str | Column
else:
    Expression = str
    """A text, or a Column."""

__all__ = ["Shortcuts"]


@dataclass(frozen=True, eq=False)
class Shortcut:
    """A transform that a shortcut makes.

    Attributes:
        label: as it was written.
        columns: the columns that rows have afterwards, by those before; None if that isn't known.
    """

    label: str
    function: Callable[[DataFrame], DataFrame]
    columns: Callable[[tuple[str, ...]], tuple[str, ...] | None] = lambda _: None

    def __call__(self, rows: DataFrame) -> DataFrame:
        return self.function(rows)


class Shortcuts(Advised, ABC):
    """What a stream has beside `transform`, which says it all."""

    @abstractmethod
    def transform(self, function: Callable[[DataFrame], DataFrame]) -> Self:
        """The stream that a function makes of this one."""

    def _check(self, what: str, given: Iterable[Expression], more: Iterable[str] = ()) -> None:
        """Refuses expressions with misspelt columns, where the columns are known. `more`: others that may be named.

        Raises:
            ProgramError: there is one.
        """

    def where(self, condition: Expression) -> Self:
        """The rows of which a condition is true.

        Args:
            condition: as text, "dep_delay > 15", or as Column.

        Raises:
            ProgramError: it is neither.
        """
        check_expression("where", condition)
        self._check("where", [condition])
        label = f"where({shown_expression(condition)})"
        return self.transform(Shortcut(label, lambda rows: rows.where(column_of(rows, condition)), lambda known: known))

    def select(self, *columns: Expression) -> Self:
        """The rows with these columns alone.

        Args:
            columns: names, expressions as text, "dep_delay / 60 AS hours", "*" for all, or Columns.

        Raises:
            ProgramError: there are none, or one is neither.
        """
        label, function = selected_columns(columns)
        self._check("select", columns, [alias(each) or "" for each in columns if isinstance(each, str)])
        return self.transform(Shortcut(label, function, lambda known: selected(known, columns)))

    def with_columns(self, columns: Mapping[str, Expression] | None = None, /, **more: Expression) -> Self:
        """The rows with columns more, or others in place of those of the same name.

            flights.with_columns(hours="dep_delay / 60", late=F.col("dep_delay") > 15)

        Args:
            columns: expressions, as text or Column, by name.
            more: the same, where names are words of Python.

        Raises:
            ProgramError: there are none, or one is neither.
        """
        label, function = named_columns(columns, more)
        named = {**(columns or {}), **more}
        self._check("with_columns", named.values(), named)
        return self.transform(Shortcut(label, function, lambda known: (*known, *named)))

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
                check_expression("branch", each)
                self._check("branch", [each])
        taken: list[Expression] = []
        streams: dict[str, Self] = {}
        for name, condition in conditions.items():
            streams[name] = self.transform(_first_match(name, condition, tuple(taken)))
            if condition is not None:
                taken.append(condition)
        return streams


def selected_columns(columns: Sequence[Expression]) -> tuple[str, Callable[[DataFrame], DataFrame]]:
    """What `select` of these columns is called, and does.

    Raises:
        ProgramError: there are none, or one is neither text nor Column.
    """
    if not columns:
        raise ProgramError('select needs columns, as .select("origin", "dep_delay / 60 AS hours")')
    for each in columns:
        check_expression("select", each)
    label = f"select({', '.join(map(shown_expression, columns))})"
    return label, lambda rows: rows.select(*[column_of(rows, each) for each in columns])


def named_columns(
    columns: Mapping[str, Expression] | None, more: Mapping[str, Expression]
) -> tuple[str, Callable[[DataFrame], DataFrame]]:
    """What `with_columns` of these is called, and does.

    Raises:
        ProgramError: there are none, or one is neither text nor Column.
    """
    named = {**(columns or {}), **more}
    if not named:
        raise ProgramError('with_columns needs columns, as .with_columns(hours="dep_delay / 60")')
    for each in named.values():
        check_expression("with_columns", each)
    label = f"with_columns({', '.join(f'{name}=…' for name in named)})"
    return label, lambda rows: rows.withColumns({name: column_of(rows, each) for name, each in named.items()})


def _first_match(name: str, condition: Expression | None, taken: Sequence[Expression]) -> Shortcut:
    """The rows of which a condition is true, and none of those before."""

    def function(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        for each in taken:
            rows = rows.where(~F.coalesce(column_of(rows, each), F.lit(False)))
        return rows if condition is None else rows.where(column_of(rows, condition))

    label = f"branch({name}={'None' if condition is None else shown_expression(condition)})"
    return Shortcut(label, function, lambda known: known)


def check_expression(what: str, given: object) -> None:
    """Refuses what is neither text nor Column.

    Raises:
        ProgramError: it isn't.
    """
    from pyspark.sql import Column

    if not isinstance(given, (str, Column)):
        raise ProgramError(f"{what} takes texts and Columns, not {given!r}. A function goes into .transform(…)")


def column_of(rows: DataFrame, given: Expression) -> Column:
    """A text is a column's name, if there is such a column, or else an expression."""
    from pyspark.sql import functions as F  # noqa: N812

    if not isinstance(given, str):
        return given
    return rows[f"`{given}`"] if given in rows.columns and "`" not in given else F.expr(given)


def shown_expression(given: Expression) -> str:
    """As it was written."""
    return repr(given) if isinstance(given, str) else column_text(given)


def quoted(name: str) -> Column:
    """A column, whatever is in its name."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.col("`" + name.replace("`", "``") + "`")
