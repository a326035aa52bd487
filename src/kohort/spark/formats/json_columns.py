"""What `pyarrow.json` reads a field as, and what is made of it: whole columns, or a `NotPlainError`.

It takes less than `json_values` does: 12.0 is no whole number, 5 no string. Where it takes more, that is refused here.
Its decimals aren't asked for: they are wrong where they have too many digits, and 1e-999999999 would end the process.
"""

from __future__ import annotations

import base64
import datetime
import re
from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_type
from kohort.spark.formats.byte_columns import Bools, byte_column, fixed
from kohort.spark.formats.times import FIRST_US, LAST_US, Counted, TimeFormats, Written, time_format

_FIRST_DAY: Final = FIRST_US // 86_400_000_000
_LAST_DAY: Final = LAST_US // 86_400_000_000

_NAME: Final = re.compile(r'[^"\\\x00-\x1f]*')
"""Names that msgspec's structs may have."""

_DIGITS: Final = 15  # that a double has
_EXACT: Final = 2.0**52  # below which doubles are half a unit apart, or less


class NotPlainError(ValueError):
    """Some of the values have to be looked at one by one: those of `rows`."""

    def __init__(self, rows: Bools) -> None:
        super().__init__()
        self.rows = rows


class Column(NamedTuple):
    """How a column is read.

    Attributes:
        read: as what `pyarrow.json` reads it.
        make: makes the column of that. Raises `NotPlainError`, or a `ValueError` that doesn't say which aren't plain.
        likely: as what msgspec reads a value that is likely to be plain, and none that isn't JSON.
    """

    read: pa.DataType
    make: Callable[[pa.Array], pa.Array]
    likely: Any


def column(kind: spark.DataType, times: TimeFormats, name: str = "") -> Column | None:
    """How a column is read; None if it can't be so: maps, decimals of many digits, names with quotes, what has these.

    Args:
        kind: the column's type.
        times: how times are written; `name` is the column's there, in a struct with those around it ("order.at").
        name: as above; "" for a row.
    """
    arrow = arrow_type(kind, name)
    match kind:
        case spark.BooleanType():
            return Column(arrow, _same, bool)
        case spark.FloatType() | spark.DoubleType():
            return Column(pa.float64(), lambda array: _float(array, arrow), float)
        case spark.DecimalType() if kind.precision <= _DIGITS:
            return Column(pa.float64(), lambda array: _decimal(array, arrow), float)
        case spark.BinaryType():
            return Column(pa.string(), _base64, bytes)
        case spark.DateType():
            between = _FIRST_DAY, _LAST_DAY
            return Column(pa.string(), lambda array: _between(array.cast(arrow), pa.int32(), *between), datetime.date)
        case spark.TimestampNTZType():
            clock = Annotated[datetime.datetime, msgspec.Meta(tz=False)]
            return Column(pa.string(), lambda array: _micros(array.cast(arrow)), clock)
        case spark.TimestampType():
            way = time_format(times, name)
            if isinstance(way, Counted):
                return Column(pa.float64(), lambda array: _counted(array, way), float)
            return Column(pa.string(), lambda array: _written(array, way), str)
        case spark.DecimalType() | spark.MapType():
            return None
        case spark.ArrayType():
            return _array(kind, times, name)
        case spark.StructType():
            return _struct(kind, times, name)
    if pa.types.is_integer(arrow):
        most = 2 ** (arrow.bit_width - 1) - 1
        return Column(arrow, _same, Annotated[int, msgspec.Meta(ge=-most - 1, le=most)])
    return Column(arrow, _same, str)


def _same(array: pa.Array) -> pa.Array:
    return array


def _array(kind: spark.ArrayType, times: TimeFormats, name: str) -> Column | None:
    element = column(kind.elementType, times, name)
    if element is None:
        return None
    arrow = arrow_type(kind, name)

    def make(array: pa.Array) -> pa.Array:
        values = array.values
        try:
            if not kind.containsNull:
                _check_plain(_are(values.is_null()))
            made = element.make(values)
        except NotPlainError as error:
            before = np.concatenate([[0], np.cumsum(error.rows)])[array.offsets.to_numpy()]
            raise NotPlainError(before[1:] > before[:-1]) from None
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, made, arrow, mask=mask)

    likely = element.likely | None if kind.containsNull else element.likely
    return Column(pa.list_(element.read), make, list[likely])  # type: ignore[valid-type]


def _struct(kind: spark.StructType, times: TimeFormats, name: str) -> Column | None:
    prefix = f"{name}." if name else ""
    fields = []
    for each in kind.fields:
        if not _NAME.fullmatch(each.name) or (found := column(each.dataType, times, prefix + each.name)) is None:
            return None
        fields.append((each, found))
    arrow = arrow_type(kind, name)

    def make(array: pa.Array) -> pa.Array:
        made = []
        not_plain = np.zeros(len(array), np.bool_)
        for number, (each, found) in enumerate(fields):
            values = array.field(number)
            if not each.nullable and values.null_count > array.null_count:  # what isn't there has none of its fields
                not_plain |= _are(pc.and_(values.is_null(), array.is_valid()))
            try:
                made.append(found.make(values))
            except NotPlainError as error:
                not_plain |= error.rows
        _check_plain(not_plain)
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(made, fields=list(arrow), mask=mask)

    likely = msgspec.defstruct(
        "Likely",
        [(f"f{n}", one.likely | None if each.nullable else one.likely, None) for n, (each, one) in enumerate(fields)],
        rename={f"f{number}": each.name for number, (each, _) in enumerate(fields)},
    )
    return Column(pa.struct([pa.field(each.name, found.read) for each, found in fields]), make, likely)


def _float(array: pa.Array, arrow: pa.DataType) -> pa.Array:
    _check_plain(_are(pc.is_inf(array)))  # it takes Inf for Infinity, too
    return array.cast(arrow, safe=False)


def _base64(array: pa.Array) -> pa.Array:
    made = [None if text is None else base64.b64decode(text, validate=True) for text in array.to_pylist()]
    return pa.array(made, pa.binary())


def _counted(array: pa.Array, way: Counted) -> pa.Array:
    """Times of numbers, whose fractions count down to microseconds."""
    numbers, there = _numbers(array)
    unit = 10.0**way.scale
    micros = np.rint(numbers * unit)
    _check_plain(np.abs(micros) >= _EXACT)
    micros -= np.where(np.abs(micros / unit) > np.abs(numbers), np.sign(numbers), 0)
    return _micros(fixed(pa.timestamp("us", "UTC"), micros.astype(np.int64), there))


def _decimal(array: pa.Array, arrow: pa.Decimal128Type) -> pa.Array:
    numbers, there = _numbers(array)
    units = np.rint(numbers * 10.0**arrow.scale)
    _check_plain((np.abs(units) >= 10.0**arrow.precision) | (units / 10.0**arrow.scale != numbers))
    low = units.astype(np.int64)
    return fixed(arrow, np.stack([low, low >> 63], axis=1), there)  # 128 bits, the low ones first


def _numbers(array: pa.Array) -> tuple[Any, Any]:
    """Doubles, 0 where there is none, and where there are."""
    there = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False)
    _check_plain(~np.isfinite(numbers))
    return numbers, there


def _written(array: pa.Array, way: Written) -> pa.Array:
    texts = byte_column(array)
    micros, bad = way.read(texts)
    _check_plain(bad)
    return fixed(pa.timestamp("us", "UTC"), micros, texts.there)


def _micros(array: pa.Array) -> pa.Array:
    return _between(array, pa.int64(), FIRST_US, LAST_US)


def _between(array: pa.Array, integers: pa.DataType, least: int, most: int) -> pa.Array:
    """The same, if all of it is; years beyond 1 to 9999 aren't times."""
    numbers = array.view(integers)
    ends: Any = pc.min_max(numbers).as_py()
    if ends["min"] is not None and not least <= ends["min"] <= ends["max"] <= most:
        raise NotPlainError(_are(pc.or_(pc.less(numbers, least), pc.greater(numbers, most))))
    return array


def _are(truths: pa.BooleanArray) -> Bools:
    """As numpy has them; a null is none."""
    found: Bools = truths.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def _check_plain(not_plain: Bools) -> None:
    if not_plain.any():
        raise NotPlainError(not_plain)
