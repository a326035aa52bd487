"""Encoded types: the few types in which state, partials and repartitioned rows are written.

| Spark | encoded |
| --- | --- |
| tinyint, smallint, int, bigint | bigint |
| float, double, decimal | string, as `cast(… as string)` writes them, so that nothing is rounded |
| timestamp, timestamp_ntz | bigint: microseconds since 1970, UTC |
| date | string: yyyy-MM-dd |
| binary | string: base64, one line |
| array, struct, map with string keys | string: JSON |
| boolean, string | themselves |

So a flat JSON object of numbers, strings and booleans holds them all, which every JSON reader reads alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it
from pyspark.sql import types as T  # noqa: N812

from kohort.spark.errors import ProgramError

JSON_OPTIONS: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "dateFormat": "yyyy-MM-dd",
}
"""How all JSON is written here: nulls stay, times in UTC with microseconds, unless they are `shown`."""

_LONG: Final = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_TEXT: Final = (T.FloatType, T.DoubleType, T.DecimalType, T.DateType, T.NullType)
_TIME: Final = (T.TimestampType, T.TimestampNTZType)
_NESTED: Final = (T.ArrayType, T.StructType, T.MapType)


def encoded_type(kind: T.DataType) -> T.DataType:
    """The encoded type of a Spark type.

    Raises:
        ProgramError: it has none.
    """
    if isinstance(kind, (*_LONG, *_TIME)):
        return T.LongType()
    if isinstance(kind, T.BooleanType):
        return T.BooleanType()
    if isinstance(kind, (*_TEXT, T.StringType, T.BinaryType)):
        return T.StringType()
    if isinstance(kind, _NESTED):
        _check_nested(kind)
        return T.StringType()
    raise ProgramError(f"a column of type {kind.simpleString()} can't be kept in a store or a topic: cast it")


def encoded_column(column: Column, kind: T.DataType) -> Column:
    """`column`, which has type `kind`, in its encoded type."""
    if isinstance(kind, _LONG):
        return column.cast("bigint")
    if isinstance(kind, _TIME):
        return F.unix_micros(column.cast("timestamp"))
    if isinstance(kind, (T.BooleanType, T.StringType)):
        return column
    if isinstance(kind, T.BinaryType):
        return F.replace(F.base64(column), F.lit("\r\n"), F.lit(""))
    if isinstance(kind, _NESTED):
        return F.to_json(column, JSON_OPTIONS)
    encoded_type(kind)  # raises for types that have none
    return column.cast("string")


def decoded_column(column: Column, kind: T.DataType) -> Column:
    """The reverse of `encoded_column`."""
    if isinstance(kind, T.LongType):
        return column
    if isinstance(kind, T.TimestampType):
        return F.timestamp_micros(column)
    if isinstance(kind, T.TimestampNTZType):
        return F.timestamp_micros(column).cast(kind)
    if isinstance(kind, (T.BooleanType, T.StringType)):
        return column
    if isinstance(kind, T.BinaryType):
        return F.unbase64(column)
    if isinstance(kind, _NESTED):
        return F.from_json(column, kind, JSON_OPTIONS)
    if isinstance(kind, T.NullType):
        return F.lit(None)  # nothing can be cast to it
    encoded_type(kind)
    return column.cast(kind)


def shown(column: Column, kind: T.DataType) -> Column:
    """`column`, which has type `kind`, as topics and keys of stores show it: times as texts, with ms like a window's
    start, or with µs where there are any.
    """
    if isinstance(kind, _TIME):
        zone = "'Z'" if isinstance(kind, T.TimestampType) else ""
        text = F.date_format(column, f"yyyy-MM-dd'T'HH:mm:ss.SSSSSS{zone}")
        millis = F.date_format(column, f"yyyy-MM-dd'T'HH:mm:ss.SSS{zone}")
        return F.when(F.pmod(F.unix_micros(column.cast("timestamp")), F.lit(1000)) == 0, millis).otherwise(text)
    if not _has_times(kind):
        return column
    if isinstance(kind, T.ArrayType):
        return F.transform(column, lambda each: shown(each, kind.elementType))
    if isinstance(kind, T.MapType):
        return F.transform_values(column, lambda _, each: shown(each, kind.valueType))
    assert isinstance(kind, T.StructType)
    fields = [shown(column.getField(each.name), each.dataType).alias(each.name) for each in kind.fields]
    return F.when(column.isNotNull(), F.struct(*fields))


def shown_object(rows: DataFrame, names: Iterable[str]) -> Column:
    """Columns of rows as a JSON object, as topics show it."""
    fields = [shown(column(name), rows.schema[name].dataType).alias(name) for name in names]
    return F.to_json(F.struct(*fields), JSON_OPTIONS)


def _has_times(kind: T.DataType) -> bool:
    match kind:
        case T.ArrayType():
            return _has_times(kind.elementType)
        case T.MapType():
            return _has_times(kind.valueType)
        case T.StructType():
            return any(_has_times(each.dataType) for each in kind.fields)
    return isinstance(kind, _TIME)


def nullable(kind: T.DataType) -> T.DataType:
    """The type that `decoded_column` gives: whatever is in it may be null, for all that Spark knows."""
    return kind.toNullable() if isinstance(kind, _NESTED) else kind


def encoded_schema(columns: tuple[tuple[str, T.DataType], ...]) -> T.StructType:
    return T.StructType([T.StructField(name, encoded_type(kind)) for name, kind in columns])


def quoted(name: str) -> str:
    """A column's name as `functions.col` takes it, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def column(name: str) -> Column:
    """The column of this name, in which a dot is a character."""
    return F.col(quoted(name))


def _check_nested(kind: T.DataType) -> None:
    if isinstance(kind, T.ArrayType):
        _check_nested(kind.elementType)
    elif isinstance(kind, T.MapType):
        if not isinstance(kind.keyType, T.StringType):
            raise ProgramError(f"{kind.simpleString()} can't be kept in a store or a topic: its keys must be strings")
        _check_nested(kind.valueType)
    elif isinstance(kind, T.StructType):
        for field in kind.fields:
            _check_nested(field.dataType)
    else:
        encoded_type(kind)
