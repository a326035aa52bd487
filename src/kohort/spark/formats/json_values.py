"""JSON values made into what a column holds, one at a time in Python: what is unusual, or wrong."""

from __future__ import annotations

import base64
import binascii
import datetime
import json
import math
import re
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final

from pyspark.sql import types as spark

from kohort.spark.formats.times import ISO, TimeFormats, Written, guessed, time_format

Make = Callable[[Any], Any]

_EPOCH: Final = datetime.datetime(1970, 1, 1)
_DAY: Final = datetime.date(1970, 1, 1)
BITS: Final[dict[type[spark.DataType], int]] = {
    spark.ByteType: 8,
    spark.ShortType: 16,
    spark.IntegerType: 32,
    spark.LongType: 64,
}
_WIDE: Final = Context(prec=80)
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_SHOWN: Final = 60


class BadValueError(ValueError):
    """A value that isn't what is wanted: says where in the record, what is wanted, and what is there."""


def parsed(text: bytes) -> Any:
    """The JSON value of these bytes, numbers with a fraction or an exponent as `_Number`.

    Raises:
        BadValueError: it isn't JSON.
    """
    try:
        return json.loads(text.decode("utf-8-sig"), parse_float=_Number)
    except UnicodeDecodeError as error:
        raise BadValueError(f"not UTF-8: {error.reason} at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise BadValueError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise BadValueError("nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise BadValueError(f"not JSON that can be read: {error}") from None


class _Number(float):
    """A number with a fraction or an exponent, which knows how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> _Number:
        number = super().__new__(cls, text)
        number.text = text
        return number


def maker(kind: spark.DataType, times: TimeFormats = ISO, name: str = "") -> Make:
    """What makes a column's value of a JSON value other than null; it raises `BadValueError`.

    Args:
        kind: the column's type.
        times: how times are written; `name` is the column's there, in a struct with those around it ("order.at").
        name: as above; "" for a row.
    """
    if type(kind) in BITS:
        return _whole(BITS[type(kind)])
    match kind:
        case spark.FloatType() | spark.DoubleType():
            return _double
        case spark.BooleanType():
            return _boolean
        case spark.StringType() | spark.VarcharType() | spark.CharType():
            return _text
        case spark.BinaryType():
            return _bytes
        case spark.DateType():
            return _date
        case spark.TimestampType():
            return _instant(times, name)
        case spark.TimestampNTZType():
            return _wall_clock
        case spark.DecimalType():
            return _decimal(kind.precision, kind.scale)
        case spark.ArrayType():
            return _array(kind, times, name)
        case spark.MapType():
            return _map(kind, times, name)
        case spark.StructType():
            return _struct(kind, times, name)
    raise AssertionError(kind)


def _wrong(wanted: str, value: Any) -> BadValueError:
    try:
        shown = value.text if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        shown = type(value).__name__
    # Half a pair of surrogates could not be written to any log.
    shown = shown.encode(errors="backslashreplace").decode()
    return BadValueError(f"{wanted} is wanted, not {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'}")


def _whole(bits: int) -> Make:
    most = 2 ** (bits - 1) - 1

    def make(value: Any) -> int:
        if isinstance(value, _Number) and value.is_integer() and abs(value) < 2**53:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise _wrong("a whole number", value)
        if not -most - 1 <= value <= most:
            raise _wrong(f"a whole number of {bits} bits", value)
        return value

    return make


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong("a number", value)
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false", value)
    return value


def _text(value: Any) -> str:
    """A string as it is; anything else as JSON, as Spark's `from_json` does."""
    if isinstance(value, _Number):
        value = value.text
    elif not isinstance(value, str):
        try:
            value = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        except RecursionError:
            raise BadValueError("nested too deeply") from None
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadValueError("half a pair of surrogates can't be text") from None
    return str(value)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise _wrong("a string in base64", value)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong("a string in base64", value) from None


def _date(value: Any) -> int:
    if isinstance(value, str):
        try:
            return (datetime.date.fromisoformat(value) - _DAY).days
        except ValueError:
            pass
    raise _wrong("a date such as 2013-01-31", value)


def _time(value: Any) -> datetime.datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.datetime.fromisoformat(value)
    except ValueError:
        return None


def _instant(times: TimeFormats, name: str) -> Make:
    way = time_format(times, name)

    def make(value: Any) -> int:
        micros = way.one(value)
        if micros is None:
            wrong = _wrong(way.wanted, value)
            if isinstance(way, Written) and (guess := guessed(value)) is not None:
                counted, given = guess
                raise BadValueError(
                    f"{wrong}; if it counts {counted} since 1970, say timestamp_format={{{name!r}: {given!r}}}"
                )
            raise wrong
        return micros

    return make


def _wall_clock(value: Any) -> int:
    time = _time(value)
    if time is None or time.tzinfo is not None:
        raise _wrong("a time without a zone such as 2013-01-31T05:00:00", value)
    return (time - _EPOCH) // datetime.timedelta(microseconds=1)


def _decimal(precision: int, scale: int) -> Make:
    unit = Decimal(1).scaleb(-scale)

    def make(value: Any) -> Decimal:
        text = value.text if isinstance(value, _Number) else value
        if (isinstance(text, str) and _NUMBER.fullmatch(text)) or (
            isinstance(text, int) and not isinstance(text, bool)
        ):
            try:
                number = Decimal(text)
                if not number or number.adjusted() < precision - scale:
                    exact = number.quantize(unit, context=_WIDE)
                    if exact == number:
                        return exact
            except (InvalidOperation, ValueError):
                pass
        raise _wrong(f"a number for decimal({precision},{scale})", value)

    return make


def _array(kind: spark.ArrayType, times: TimeFormats, name: str) -> Make:
    make, null = maker(kind.elementType, times, name), kind.containsNull

    def array(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _wrong("an array", value)
        return [_inner(make, null, f"[{index}]", each) for index, each in enumerate(value)]

    return array


def _map(kind: spark.MapType, times: TimeFormats, name: str) -> Make:
    make_key, make = maker(kind.keyType, times, name), maker(kind.valueType, times, name)
    null = kind.valueContainsNull
    as_text = isinstance(kind.keyType, _TEXTS)

    def key(name: str) -> Any:
        try:
            value = name if as_text else parsed(name.encode(errors="replace"))
        except BadValueError:
            value = name  # make_key says what is wanted
        try:
            return make_key(value)
        except BadValueError as error:
            raise BadValueError(f"the key {name!r}: {error}") from None

    def pairs(value: Any) -> list[tuple[Any, Any]]:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        return [(key(name), _inner(make, null, f"[{name!r}]", each)) for name, each in value.items()]

    return pairs


_TEXTS: Final = (
    spark.StringType, spark.VarcharType, spark.CharType, spark.BinaryType, spark.DecimalType,
    spark.DateType, spark.TimestampType, spark.TimestampNTZType,
)  # fmt: skip
"""Types of keys that are the name itself; others are what the name is as JSON."""


def _struct(kind: spark.StructType, times: TimeFormats, name: str) -> Make:
    prefix = f"{name}." if name else ""
    fields = [(each.name, maker(each.dataType, times, f"{prefix}{each.name}"), each.nullable) for each in kind.fields]

    def struct(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong("an object", value)
        return {name: _inner(make, null, name, value.get(name)) for name, make, null in fields}

    return struct


def _inner(make: Make, null: bool, name: str, value: Any) -> Any:
    try:
        if value is None:
            if not null:
                raise BadValueError("there is none, and null isn't allowed")
            return None
        return make(value)
    except BadValueError as error:
        detail = str(error)
        between = "" if detail.startswith("[") else ": " if " " in detail.split(":")[0] else "."
        raise BadValueError(f"{name}{between}{detail}") from None
