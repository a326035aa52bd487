"""Checks of columns: their names, their types, and whether one is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kohort.spark.errors import ProgramError
from kohort.spark.internals import arrow_schema as exchanged_schema
from kohort.spark.program.internal_columns import PARTITION, RESERVED

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_OF_TABLES: Final = re.compile(r"\b(var)?char\([0-9]+\)")


def check_names(where: str, names: Sequence[str]) -> None:
    """Refuses columns that occur twice, or have the name of an internal one. As in Spark, case makes no difference.

    Raises:
        ProgramError: there is one.
    """
    times = Counter(name.lower() for name in names)
    if twice := [name for name in names if times[name.lower()] > 1]:
        raise ProgramError(f"{where}: the column {twice[0]!r} is there twice")
    if own := [name for name in names if name.lower() in RESERVED]:
        raise ProgramError(f"{where}: a column can't be called {own[0]!r}, as one of Kohort's own")


def check_types(where: str, schema: StructType) -> None:
    """Refuses columns of types that can't be moved or kept.

    Raises:
        ProgramError: there is one.
    """
    from kohort.spark.formats.arrow_types import arrow_schema
    from kohort.spark.formats.interfaces import FormatError

    try:
        arrow_schema(schema)
    except FormatError as error:
        raise ProgramError(f"{where}: {error}") from None
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if _OF_TABLES.search(kind):
            raise ProgramError(f"{where}: {field.name} is {kind.upper()}, which only tables have: write STRING")


def check_exchanged(where: str, schema: StructType) -> None:
    """Refuses columns of types that Spark doesn't give to Python, as INTERVAL YEAR TO MONTH.

    Raises:
        ProgramError: there is one.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    from kohort.spark.formats.arrow_types import FOR_INTERVALS

    for each in schema.fields:
        try:
            exchanged_schema(StructType([each]))
        except PySparkException:
            kind = each.dataType.simpleString().upper()
            instead = f": {FOR_INTERVALS}" if "INTERVAL" in kind else ""
            raise ProgramError(f"{where}: {each.name} is {kind}, which can't be moved{instead}") from None


def one_of(what: str, name: str, schema: StructType) -> DataType:
    """The type of a column that must be there.

    Raises:
        ProgramError: it isn't; begins with `what`, and says which columns there are.
    """
    for each in schema.fields:
        if each.name == name:
            return each.dataType
    names = [each.name for each in schema.fields if each.name != PARTITION]
    alike = [each for each in names if each.lower() == name.lower()]
    hint = f"did you mean {alike[0]!r}?" if alike else f"there are {', '.join(names)}"
    raise ProgramError(f"{what}: there is no such column; {hint}")


def column_names(what: str, given: str | Sequence[str]) -> tuple[str, ...]:
    """Names of columns, as a tuple.

    Raises:
        ProgramError: there are none, they aren't names, or one comes twice.
    """
    if not isinstance(given, Iterable):
        raise ProgramError(f"{what}: takes names of columns, not {given!r}")
    names = (given,) if isinstance(given, str) else tuple(given)
    if not names:
        raise ProgramError(f"{what}: give a column's name at least")
    if strange := [name for name in names if not isinstance(name, str)]:
        raise ProgramError(f"{what}: takes names of columns, not {strange[0]!r}")
    if twice := [name for name, often in Counter(names).items() if often > 1]:
        raise ProgramError(f"{what}: {twice[0]!r} is named twice")
    return names


def without_partition(schema: StructType) -> StructType:
    """The columns of the user's alone: transforms see `_partition`, too."""
    from pyspark.sql.types import StructType

    return StructType([each for each in schema.fields if each.name != PARTITION])
