"""How columns are read from what another schema wrote: Avro's rules of schema resolution, for a record's fields.

| The reader's schema | The writer's | |
| --- | --- | --- |
| a field, or one of its aliases | a field of that name | read, if the types go together |
| a field with a default | none | the default |
| a field without a default | none | can't be read |
| none | a field | passed over |
| long, float, double | int | the number; likewise float and double of long, double of float |
| string, bytes | bytes, string | the bytes |
| enum | enum | the symbol; one that the reader lacks is its default, or makes the record a bad one |
| X | union of X and null | a null makes the record a bad one |

Fields that aren't columns don't matter, whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pyspark.sql import types as spark

from kohort.spark.formats.avro_schema import unwrap
from kohort.spark.formats.interfaces import FormatError

_PROMOTED: Final = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


@dataclass(frozen=True)
class ReadField:
    """What a column is read from.

    Attributes:
        written: the writer's field; None if it has none.
        avro: the reader's type, without a union with null.
        nullable: whether the reader takes a null.
        default: of a field that the writer hasn't, as a value for Arrow.
    """

    written: str | None
    avro: Any
    nullable: bool
    default: Any = None


def resolve(columns: spark.StructType, writer: dict[str, Any], reader: dict[str, Any] | None) -> list[ReadField]:
    """What each column is read from.

    Args:
        writer, reader: records' schemas, as `avro_schema.parse` gives them. Without a reader's the columns say what is
            wanted: they are found by their names, and those that may be null are null where the writer lacks them.

    Raises:
        FormatError: there's a column that what was written doesn't give.
    """
    written = {each["name"]: each["type"] for each in writer["fields"]}
    if reader is None:
        return [_by_column(column, written) for column in columns.fields]
    wanted = {each["name"]: each for each in reader["fields"]}
    return [_by_reader(column, wanted, written) for column in columns.fields]


def _by_column(column: spark.StructField, written: dict[str, Any]) -> ReadField:
    if column.name in written:
        return ReadField(column.name, unwrap(written[column.name])[0], nullable=True)
    if not column.nullable:
        raise FormatError(f"the Avro schema has no field {column.name}, but {', '.join(written) or 'none'}")
    return ReadField(None, "null", nullable=True)


def _by_reader(column: spark.StructField, wanted: dict[str, Any], written: dict[str, Any]) -> ReadField:
    name = column.name
    if name not in wanted:
        raise FormatError(f"the Avro schema has no field {name}, but {', '.join(wanted) or 'none'}")
    field = wanted[name]
    avro, null = unwrap(field["type"])
    nullable = null >= 0 or isinstance(avro, list) or avro == "null"
    for each in (name, *field.get("aliases", ())):
        if each in written:
            _check(name, unwrap(written[each])[0], avro)
            return ReadField(each, avro, nullable)
    if "default" not in field:
        raise FormatError(f"field {name}: the writer's schema has none, and the reader's no default for it")
    return ReadField(None, avro, nullable, default_value(field["type"], field["default"]))


def _check(name: str, written: Any, wanted: Any) -> None:
    """Raises FormatError if plain types don't go together. Those of unions and of what is nested, a value shows."""
    one, other = _plain(written), _plain(wanted)
    if one == other:
        if one == "fixed" and written["size"] != wanted["size"]:
            raise FormatError(f"field {name}: {written['size']} bytes were written, the reader has {wanted['size']}")
        return
    if "union" in (one, other) or "null" in (one, other) or other in _PROMOTED.get(one, ()):
        return
    raise FormatError(f"field {name}: {one} was written, which can't be read as {other}")


def _plain(avro: Any) -> str:
    return "union" if isinstance(avro, list) else avro if isinstance(avro, str) else str(avro["type"])


def default_value(avro: Any, value: Any) -> Any:
    """A default of a schema's JSON, as Arrow takes it.

    Raises:
        FormatError: it isn't of its type.
    """
    try:
        return _default(avro, value)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FormatError(f"the default {value!r} isn't of its type in the Avro schema") from None


def _default(avro: Any, value: Any) -> Any:
    if isinstance(avro, list):
        if value is None and "null" in avro:
            return None
        return _default(next(each for each in avro if each != "null"), value)
    kind = avro if isinstance(avro, str) else avro["type"]
    logical = "" if isinstance(avro, str) else avro.get("logicalType", "")
    match kind:
        case "bytes" | "fixed":
            data = value.encode("latin-1")
            if logical == "decimal":
                return Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-int(avro.get("scale", 0)))
            return data
        case "int" | "long":
            return int(value) * 1000 if logical.endswith("millis") and logical.startswith(("time", "local")) else value
        case "array":
            return [_default(avro["items"], each) for each in value]
        case "map":
            return {name: _default(avro["values"], each) for name, each in value.items()}
        case "record":
            return {
                each["name"]: _default(each["type"], value[each["name"]] if each["name"] in value else each["default"])
                for each in avro["fields"]
            }
    return value


def prune(reader: dict[str, Any], writer: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """The reader's schema with some fields only, as the writer's record is called, and defaults within as values."""
    fields = [each | {"type": _with_values(each["type"])} for each in reader["fields"] if each["name"] in names]
    return reader | {"name": writer["name"], "fields": fields}


def _with_values(avro: Any) -> Any:
    if isinstance(avro, list):
        return [_with_values(each) for each in avro]
    if isinstance(avro, str):
        return avro
    match avro["type"]:
        case "record":
            return avro | {"fields": [_field_with_value(each) for each in avro["fields"]]}
        case "array":
            return avro | {"items": _with_values(avro["items"])}
        case "map":
            return avro | {"values": _with_values(avro["values"])}
    return avro


def _field_with_value(field: dict[str, Any]) -> dict[str, Any]:
    made = field | {"type": _with_values(field["type"])}
    return made | {"default": default_value(field["type"], field["default"])} if "default" in field else made
