"""The interface of aggregates whose partial results merge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DataType, NumericType

from kohort.spark.errors import ProgramError
from kohort.spark.internals import column_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kohort.spark.program.aggregates.columnwise import Columnwise

__all__ = ["Aggregation", "Named", "column", "if_true", "numeric", "state", "type_of"]

Named = list[tuple[str, "Column"]]
"""State columns: names and expressions."""


class Aggregation(ABC):
    """An aggregate whose partial results can be merged: those of any split of the rows give that of all rows.

    It keeps *state columns*, named `{name}` or `{name}.{part}`. Nothing here needs a Spark session before `bound`.

    Attributes:
        version: of the state that a user's subclass keeps. With another one, state from before isn't gone on with.
            Nor is it if the subclass is a dataclass and a field that is a plain value has changed.
    """

    version: str = "1"

    def bound(self, rows: DataFrame, event_time: str | None) -> Aggregation:
        """Returns the same for rows of this schema, with what depends on their types.

        Args:
            event_time: the column that first and last go by without `by=`.

        Raises:
            ProgramError: it can't be computed over such rows.
        """
        return self

    def filtered(self, condition: Column) -> Aggregation:
        """Returns the same, bound as this one is, over those rows alone of which a condition is true.

        Raises:
            ProgramError: it can't be said of this kind.
        """
        raise ProgramError(
            f"{type(self).__name__} can't be told which rows to take: say it in what it computes of them"
        )

    def signed(self, rows: DataFrame) -> Aggregation:
        """Returns the same, bound as this one is, over a table's rows: of each the column `_sign` says that it comes in
        (1) or leaves (-1).

        Raises:
            ProgramError: it can't be said without the rows that are left.
        """
        raise ProgramError(
            "what leaves a table's groups is subtracted, which this aggregate can't: count, count_if, count_distinct, "
            "sum_, avg, variance, stddev, min_, max_ and collect can, and your own that say how, aggregation(…, "
            "subtract=…). For others group the table's rows as a stream, .as_stream(), of which nothing leaves"
        )

    @property
    def heap_bytes(self) -> int:
        """About how much of the JVM's heap a group takes while it is aggregated, where Spark keeps it as an object."""
        return 256

    @property
    def by_sign(self) -> bool:
        """Whether `partial` takes rows that all come in, or all leave: those of one `_sign`."""
        return False

    @property
    def by_offset(self) -> bool:
        """Whether `partial` goes by the rows' column `_offset`."""
        return False

    @property
    def columnwise(self) -> Columnwise | None:
        """`merge` and `finish` without Spark; None where only Spark can."""
        return None

    @abstractmethod
    def partial(self, name: str) -> Named:
        """The state columns, as aggregate expressions over rows."""

    @abstractmethod
    def merge(self, name: str) -> Named:
        """The state columns, as aggregate expressions over state columns; rows of nulls change nothing."""

    def settled(self, name: str) -> Named:
        """State columns that change once more when the store's state is merged, too, as expressions over merged ones:
        what left is subtracted then. None by default.
        """
        return []

    @abstractmethod
    def finish(self, name: str) -> Column:
        """The result, as an expression over merged state columns."""


def column(given: str | Column) -> Column:
    """The column of a name, with dots before fields of structs; an expression stays as it is."""
    return F.col(given) if isinstance(given, str) else given


def state(name: str, part: str | None = None) -> Column:
    """A state column, which may have a dot in its name."""
    return F.col(f"`{name}`" if part is None else f"`{name}.{part}`")


def type_of(rows: DataFrame, given: str | Column) -> DataType:
    """The type of a column, or of an expression over rows."""
    if isinstance(given, str) and given in rows.columns:
        return rows.schema[given].dataType  # spares Spark the analysis
    return rows.select(column(given).alias("x")).schema[0].dataType


def numeric(what: str, rows: DataFrame, given: str | Column) -> DataType:
    """The type of a column of numbers.

    Raises:
        ProgramError: it isn't one.
    """
    found = type_of(rows, given)
    if not isinstance(found, NumericType):
        raise ProgramError(
            f"{what}({label(given)}) takes numbers, but {label(given)} is {found.simpleString().upper()}"
        )
    return found


def if_true(condition: Column, given: str | Column) -> Column:
    """The column where a condition is true, and null elsewhere."""
    return F.when(condition, column(given))


def label(given: str | Column) -> str:
    """A column as messages name it."""
    return repr(given) if isinstance(given, str) else column_text(given)
