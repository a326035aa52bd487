"""Rows of a test as records of a topic: values in the topic's format, and the keys that producers would give them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql.types import StructType

from kohort.protocol.records.arrow import RECORD_SCHEMA
from kohort.spark.formats.json_encoder import plain
from kohort.spark.program.compiled import SourceSpec
from kohort.spark.program.internal_columns import HEADERS
from kohort.spark.program.record_keys import KeyReading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Rows: TypeAlias = "Iterable[Mapping[str, Any] | bytes | str | None] | pa.Table | pa.RecordBatch | DataFrame | Any"
"""Rows to pipe: dicts, raw values (bytes, or text), None for a record without a value; Arrow, Spark, pandas."""

Key = Mapping[str, Any] | str | bytes | None
"""A record's key: bytes or text as they are, or the columns that it holds."""

Time = datetime | int
"""A datetime, without a zone in UTC; or ms since 1970."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS: Final = {"timestamp_seconds": 10**6, "timestamp_millis": 10**3, "timestamp_micros": 1}


class InputRows:
    """Makes records of a topic's rows.

    Args:
        source: what the program says of the topic.
        plain_decimals: see `key_texts`.
    """

    def __init__(self, source: SourceSpec, *, plain_decimals: bool) -> None:
        self._source, self._plain_decimals = source, plain_decimals
        self._values = StructType([each for each in source.schema.fields if each.name not in source.added])

    def records(self, rows: Rows, key: Key | Sequence[Key], times: Time | Sequence[Time] | None, now: int) -> pa.Table:
        """Records: key, value, timestamp (ms), and headers where the stream has them.

        Args:
            rows: see `Rows`.
            key: of all rows, or one for each; None for what the rows' columns say.
            times: of all rows, or one for each; None for now.
            now: ms since 1970.

        Raises:
            ValueError: a row that can't be one of the topic's: says which, and what is wrong.
        """
        given, headers = self._without_headers(self._listed(rows))
        values = [self._value(number, row) for number, row in enumerate(given)]
        keys = self._keys(given, key)
        stamps = _each(times, len(given), self._where, "at", (datetime, int))
        columns = {
            "key": pa.array(keys, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([now if each is None else millis(each) for each in stamps], pa.int64()),
        }
        return pa.table(columns if headers is None else {**columns, "headers": headers})

    def _without_headers(self, rows: list[Any]) -> tuple[list[Any], pa.Array | None]:
        """The rows, and the headers that are among their columns: lists of {"key": …, "value": …}."""
        if not self._source.headers:
            return rows, None
        kind = RECORD_SCHEMA.field("headers").type
        headers = [(row.get(HEADERS) or []) if isinstance(row, Mapping) else [] for row in rows]
        others = [
            {name: value for name, value in row.items() if name != HEADERS} if isinstance(row, Mapping) else row
            for row in rows
        ]
        return others, pa.array(headers, kind)

    def key(self, key: Key) -> bytes | None:
        """A key as the topic's records have it."""
        if isinstance(key, Mapping) and self._source.key_read is not None:
            return self._formatted_key(key, self._source.key_read)
        if isinstance(key, Mapping):
            return self._key_of([key], self._source.key or tuple(key))[0]
        return key.encode() if isinstance(key, str) else key

    def _formatted_key(self, key: Mapping[str, Any], said: KeyReading) -> bytes:
        if said.registry is not None:
            raise ValueError(f"{self._where}: the keys' schema is in a registry: give bytes, as serializers make them")
        from kohort.spark.formats import encoder
        from kohort.spark.formats.arrow_types import arrow_schema

        columns = StructType.fromJson(json.loads(said.schema))
        try:
            row = pa.Table.from_pylist([dict(key)], arrow_schema(columns))
            made: bytes = encoder(said.format, columns, said.avro_schema).encode(row)[0].as_py()
        except (ValueError, TypeError, pa.ArrowException) as error:
            raise ValueError(f"{self._where}: {dict(key)} is no key of {columns.simpleString()}: {error}") from None
        return made

    @property
    def _where(self) -> str:
        return f"topic {self._source.topic!r}"

    def _row(self, number: int) -> str:
        return f"{self._where}, row {number}"

    def _listed(self, rows: Any) -> list[Any]:
        """Rows as dicts, or what stands for a value."""
        if isinstance(rows, (str, bytes, Mapping)):
            raise ValueError(f"{self._where}: rows are a list, as [{{…}}], not one {type(rows).__name__}")
        if hasattr(rows, "toArrow"):  # Spark's DataFrame
            rows = rows.toArrow()
        elif hasattr(rows, "to_records") and hasattr(rows, "columns"):  # pandas'
            rows = pa.Table.from_pandas(rows, preserve_index=False)
        if isinstance(rows, pa.RecordBatch):
            rows = pa.table(rows)
        return rows.to_pylist() if isinstance(rows, pa.Table) else list(rows)

    def _value(self, number: int, row: Any) -> bytes | None:
        if row is None or isinstance(row, bytes):
            return row
        if isinstance(row, str):
            return row.encode()
        if not isinstance(row, Mapping):
            raise ValueError(
                f"{self._row(number)}: {row!r} is neither a dict of columns, nor a value as bytes or text, nor None"
            )
        if strange := [name for name in row if name not in self._values.names]:
            raise ValueError(
                f"{self._row(number)}: there is no column {strange[0]!r}; there are {', '.join(self._values.names)}"
            )
        if self._source.format == "json":
            named = {name: self._json(number, name, value) for name, value in row.items()}
            return json.dumps(named, separators=(",", ":"), ensure_ascii=False).encode()
        return self._encoded(number, row)

    def _json(self, number: int, name: str, value: Any) -> Any:
        """A value as JSON has it: a time in the topic's format."""
        if not isinstance(value, datetime):
            return plain(value)
        wanted = "" if self._source.times is None else self._source.times.of(name)
        time = _in_utc(value)
        if wanted in _UNITS:
            micros, unit = (time - _EPOCH) // timedelta(microseconds=1), _UNITS[wanted]
            return micros // unit if micros % unit == 0 else micros / unit
        if wanted:
            raise ValueError(
                f"{self._row(number)}: column {name!r} is written as {wanted!r}: give the text, as the topic has it"
            )
        return plain(time)

    def _encoded(self, number: int, row: Mapping[str, Any]) -> bytes:
        if self._source.registry is not None:
            raise ValueError(
                f"{self._row(number)}: its schema is in a registry: give bytes, as that one's serializers make them"
            )
        from kohort.spark.formats import encoder
        from kohort.spark.formats.arrow_types import arrow_schema

        schema = arrow_schema(self._values)
        full = {name: self._time(name, row.get(name), schema.field(name).type) for name in schema.names}
        try:
            table = pa.Table.from_pylist([full], schema)
            delimiter = "," if self._source.csv is None else self._source.csv.delimiter
            made = encoder(self._source.format, self._values, self._source.avro_schema, delimiter=delimiter).encode(
                table
            )
        except (ValueError, TypeError, pa.ArrowException) as error:
            raise ValueError(f"{self._row(number)} isn't one of {self._values.simpleString()}: {error}") from None
        value: bytes = made[0].as_py()
        return value

    def _time(self, name: str, value: Any, kind: pa.DataType) -> Any:
        """A time that is a number or a text, as a topic has it, as a datetime; other values as they are."""
        if not pa.types.is_timestamp(kind):
            return value
        unit = _UNITS.get("" if self._source.times is None else self._source.times.of(name), 1)
        if isinstance(value, int):
            value = _EPOCH + timedelta(microseconds=value * unit)
        elif isinstance(value, str):
            value = datetime.fromisoformat(value)
        if not isinstance(value, datetime):
            return value
        return _in_utc(value) if kind.tz else _in_utc(value).replace(tzinfo=None)

    # Keys ------------------------------------------------------------------------------------------------------------

    def _keys(self, rows: list[Any], key: Key | Sequence[Key]) -> list[bytes | None]:
        if key is not None:
            return [self.key(each) for each in _each(key, len(rows), self._where, "key", (str, bytes, Mapping))]
        names = self._source.key
        keyed = [number for number, row in enumerate(rows) if isinstance(row, Mapping)]
        if not names or not keyed:
            return [None] * len(rows)
        keys: list[bytes | None] = [None] * len(rows)
        for number, made in zip(keyed, self._key_of([rows[number] for number in keyed], names), strict=True):
            keys[number] = made
        return keys

    def _key_of(self, rows: Sequence[Mapping[str, Any]], names: tuple[str, ...]) -> list[bytes | None]:
        """The keys of rows, of these columns: the same bytes as Spark makes of them."""
        from kohort.spark.formats.arrow_types import arrow_type
        from kohort.spark.jobs.arrow_key_encoding import key_texts

        columns = []
        for name in names:
            if name not in self._source.schema.names:
                raise ValueError(f"{self._where}: there is no column {name!r} for a key")
            kind = arrow_type(self._source.schema[name].dataType, name)
            try:
                columns.append(pa.array([self._time(name, row.get(name), kind) for row in rows], kind))
            except (ValueError, TypeError, pa.ArrowException) as error:
                raise ValueError(
                    f"{self._where}: no key can be made of column {name!r}: {error}. Say the keys with key="
                ) from None
        texts = key_texts(names, columns, plain_decimals=self._plain_decimals)
        made: list[bytes | None] = texts.cast(pa.binary()).to_pylist()
        return made


def millis(time: Time) -> int:
    """A time in ms since 1970."""
    return time if isinstance(time, int) else (_in_utc(time) - _EPOCH) // timedelta(milliseconds=1)


def _in_utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _each(given: Any, count: int, where: str, name: str, one: tuple[type, ...]) -> list[Any]:
    """One for each row."""
    if given is None or isinstance(given, one):
        return [given] * count
    listed = list(given)
    if len(listed) != count:
        raise ValueError(f"{where}: {name}= has {len(listed)} for {count} rows")
    return listed
