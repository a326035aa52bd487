"""The times of sources: how they are written, and which are computed from a number or the record's timestamp."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from kohort.spark.errors import ProgramError
from kohort.spark.formats.derived_times import FUNCTIONS, RECORD_TIME, DerivedTime
from kohort.spark.internals import column_text
from kohort.spark.program.column_checks import check_names, one_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    from kohort.spark.formats.times import TimeFormats

__all__ = [
    "RECORD_TIME", "TimestampFormat", "check_time_formats", "event_time_of", "time_formats", "to_millis", "with_times",
]  # fmt: skip

TimestampFormat = str | Mapping[str, str]
"""One for all TIMESTAMP columns, or by column: "timestamp_millis", "yyyy-MM-dd HH:mm:ss", …"""

_NAMED: Final = re.compile(r"(?P<function>timestamp_\w+)\((?P<column>[^()]+)\) AS (?P<name>.+)", re.IGNORECASE)


def time_formats(
    where: str,
    format: str,  # noqa: A002
    timestamp_format: TimestampFormat | None,
    time_zone: str | None,
) -> TimeFormats | None:
    """The formats that a user gives; None for those of ISO 8601 in UTC.

    Raises:
        ProgramError: they can't be, or the source isn't JSON.
    """
    if timestamp_format is None and time_zone is None:
        return None
    from kohort.spark.formats import FormatError
    from kohort.spark.formats.times import TimeFormats, check_times

    if format != "json":
        option = "time_zone" if timestamp_format is None else "timestamp_format"
        raise ProgramError(f'{where}: {option} is for format="json"; times in "{format}" are what they are')
    by_column = timestamp_format if isinstance(timestamp_format, Mapping) else {"": timestamp_format}
    for name, given in by_column.items():
        if not isinstance(name, str) or (not (isinstance(given, str) and given) and timestamp_format is not None):
            raise ProgramError(
                f"{where}: timestamp_format={timestamp_format!r}: say one for all TIMESTAMP columns, as "
                f'"timestamp_millis" or "yyyy-MM-dd HH:mm:ss", or one by column, as {{"at": "timestamp_millis"}}'
            )
    formats = TimeFormats(
        tuple((name, given) for name, given in by_column.items() if given), "UTC" if time_zone is None else time_zone
    )
    try:
        check_times(formats)
    except FormatError as error:
        raise ProgramError(f"{where}: {error}") from None
    return formats


def check_time_formats(where: str, times: TimeFormats, schema: StructType) -> None:
    """Refuses formats of columns that are missing, or have no times.

    Raises:
        ProgramError: there is one.
    """
    there = dict(_paths(schema, ""))
    with_times = sorted(name for name, has_times in there.items() if has_times)
    if not with_times:
        raise ProgramError(f"{where}: timestamp_format and time_zone are for TIMESTAMP columns; the schema has none")
    for name, _ in times.formats:
        if name and not there.get(name):
            why = "isn't a TIMESTAMP" if name in there else "isn't in the schema"
            raise ProgramError(f"{where}: timestamp_format of {name!r}: it {why}; there are {', '.join(with_times)}")


def event_time_of(where: str, given: str | Column | None) -> tuple[str | None, DerivedTime | None]:
    """The event time's column, and what it is made of if it's an expression.

    Raises:
        ProgramError: it is another expression, or has no name.
    """
    if given is None:
        return None, None
    text = column_text(given)
    if "(" not in text:
        return text.strip("`"), None
    named = _NAMED.fullmatch(text)
    if named is not None and named["function"].lower() in FUNCTIONS:
        function, column, name = (each.strip("` ") for each in named.groups())
        return name, DerivedTime(name, function.lower(), column)
    what = 'F.timestamp_millis("dateTime").alias("at")'
    if _NAMED.fullmatch(f"{text} AS at"):
        raise ProgramError(
            f'{where}: event_time={text} needs a name, by which windows and aggregates go: say .alias("at")'
        )
    raise ProgramError(
        f"{where}: event_time={text} can't be: it takes a TIMESTAMP column's name, or {what} or "
        f"F.timestamp_seconds or F.timestamp_micros. Texts are read by timestamp_format"
    )


def with_times(
    where: str, schema: StructType, made: DerivedTime | None
) -> tuple[StructType, StructType, tuple[DerivedTime, ...]]:
    """The columns that are in the values, those of the rows, and how the rows' others are made.

    Raises:
        ProgramError: what they are made of isn't there, or can't be, or there is nothing but them.
    """
    from pyspark.sql.types import IntegralType, StructField, StructType, TimestampType

    derived = []
    rows = schema
    in_values = StructType([field for field in schema.fields if field.name != RECORD_TIME])
    if len(in_values) < len(schema):
        if not isinstance(kind := schema[RECORD_TIME].dataType, TimestampType):
            raise ProgramError(
                f"{where}: {RECORD_TIME} is the record's own time, a TIMESTAMP, not {kind.simpleString().upper()}"
            )
        if not in_values.fields:
            raise ProgramError(f"{where}: the schema has no column beside {RECORD_TIME}, the record's own time")
        derived.append(DerivedTime(RECORD_TIME))
    if made is not None:
        what = f"{where}: event_time={made.function}({made.column!r})"
        kind = one_of(what, made.column, in_values)
        if not isinstance(kind, IntegralType):
            raise ProgramError(f"{what} takes a whole number, but {made.column!r} is {kind.simpleString().upper()}")
        rows = StructType([*schema.fields, StructField(made.name, TimestampType())])
        check_names(where, rows.names)
        derived.append(made)
    return in_values, rows, tuple(derived)


def to_millis(name: str) -> str:
    """The hint in messages about a column of whole numbers that should be a time."""
    return (
        f"If it counts milliseconds since 1970, say TIMESTAMP in the schema and "
        f"timestamp_format={{{name!r}: 'timestamp_millis'}}"
    )


def _paths(kind: DataType, name: str) -> Iterator[tuple[str, bool]]:
    """The names that formats may be given for, and whether there are times: "at", "order", "order.at"."""
    from pyspark.sql.types import ArrayType, MapType, StructType, TimestampType

    match kind:
        case StructType():
            found = []
            for field in kind.fields:
                path = f"{name}.{field.name}" if name else field.name
                found += list(_paths(field.dataType, path))
            yield from found
            if name:
                yield name, any(has_times for _, has_times in found)
        case ArrayType():
            yield from _paths(kind.elementType, name)
        case MapType():
            some = [*_paths(kind.keyType, name), *_paths(kind.valueType, name)]
            yield from some
            yield name, any(has_times for _, has_times in some)
        case _:
            yield name, isinstance(kind, TimestampType)
