"""Rows to JSON objects, row by row in Python: for small things. Spark's `to_json` writes the large ones."""

from __future__ import annotations

import base64
import datetime
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import types as spark

from kohort.spark.formats.arrow_types import arrow_schema


class JsonEncoder:
    """Writes a row as a JSON object without blanks; nulls are kept.

    Times are written as 2013-01-31T05:00:00.000Z (ms, or µs where there are any), bytes in base64.
    """

    def __init__(self, schema: spark.StructType) -> None:
        self._schema = arrow_schema(schema)

    def encode(self, table: pa.Table | pa.RecordBatch) -> pa.Array:
        missing = [name for name in self._schema.names if name not in table.schema.names]
        if missing:
            raise ValueError(f"there's no column {', '.join(missing)}, but {', '.join(table.schema.names) or 'none'}")
        rows = table.select(self._schema.names).to_pylist()
        texts = [json.dumps(plain(row), separators=(",", ":"), ensure_ascii=False).encode() for row in rows]
        return pa.array(texts, pa.binary())


def plain(value: Any) -> Any:
    """A value of Arrow's as `json.dumps` takes it."""
    match value:
        case dict():
            return {str(plain(name)): plain(each) for name, each in value.items()}
        case list() if value and all(isinstance(each, tuple) for each in value):  # a map
            return {str(plain(name)): plain(each) for name, each in value}
        case list():
            return [plain(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.datetime():
            zone = "" if value.tzinfo is None else "Z"
            utc = value if value.tzinfo is None else value.astimezone(datetime.UTC)
            precision = "microseconds" if value.microsecond % 1000 else "milliseconds"
            return utc.replace(tzinfo=None).isoformat(timespec=precision) + zone
        case datetime.date():
            return value.isoformat()
        case Decimal():
            return float(value) if float(value) == value else str(value)
    return value
