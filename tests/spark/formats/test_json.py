"""The JSON decoder: rows stay aligned, good ones are what `json.loads` says, bad ones are named."""

from __future__ import annotations

import datetime
import json
import math
import re
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql import types as spark

from kohort.spark.formats import FormatError, decoder, encoder, flat_json, json_decoder
from kohort.spark.formats.times import TimeFormats

FLAT = spark.StructType(
    [
        spark.StructField("a", spark.LongType()),
        spark.StructField("b", spark.StringType()),
        spark.StructField("c", spark.DoubleType()),
        spark.StructField("d", spark.BooleanType()),
    ]
)
DECODER = decoder("json", FLAT)


def decoded(schema: spark.StructType, *values: bytes | None) -> tuple[list[dict[str, Any] | None], dict[int, str]]:
    """A row for each value, None for the bad ones; and why those are bad."""
    return rows_of(decoder("json", schema).decode(pa.array(values, pa.binary())), len(values))


def rows_of(result: Any, count: int) -> tuple[list[dict[str, Any] | None], dict[int, str]]:
    result.columns.validate(full=True)
    errors = dict(result.errors)
    good = list(range(count)) if result.good is None else result.good.to_pylist()
    assert sorted([*good, *errors]) == list(range(count))
    assert all(errors.values())
    rows: list[dict[str, Any] | None] = [None] * count
    for row, values in zip(good, result.columns.to_pylist(), strict=True):
        rows[row] = values
    return rows, errors


def one(name: str, kind: spark.DataType, text: str) -> Any:
    """A field's value, or the error's text."""
    rows, errors = decoded(spark.StructType([spark.StructField(name, kind)]), text.encode())
    return errors.get(0) if rows[0] is None else rows[0][name]


def expected(value: bytes | None) -> dict[str, Any] | None:
    """What plain Python says of a flat row; None for a bad one."""
    if value is None:
        return dict.fromkeys("abcd")
    try:
        found = json.loads(value.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    a: Any
    b: Any
    a, b, c, d = (found.get(name) for name in "abcd")
    if isinstance(a, float) and a.is_integer() and abs(a) < 2**53:
        a = int(a)
    if a is not None and (type(a) is not int or not -(2**63) <= a < 2**63):
        return None
    if b is not None:
        if not isinstance(b, str):
            b = ...  # some text of it
        elif any(0xD800 <= ord(each) < 0xE000 for each in b):
            return None
    if type(c) is int:
        try:
            c = float(c)
        except OverflowError:
            c = math.inf if c > 0 else -math.inf
    if (c is not None and type(c) is not float) or (d is not None and type(d) is not bool):
        return None
    return {"a": a, "b": b, "c": c, "d": d}


def same(found: dict[str, Any] | None, wanted: dict[str, Any] | None) -> bool:
    if found is None or wanted is None:
        return found is wanted
    for name, value in wanted.items():
        other = found[name]
        nan = isinstance(value, float) and math.isnan(value) and isinstance(other, float) and math.isnan(other)
        if not (value is ... or nan or (value == other and type(value) is type(other))):
            return False
    return True


HOSTILE = [
    b"", b" ", b"\n", b"null", b"[]", b"1", b'"x"', b"{", b"}", b"{}", b"{}{}", b"{} {}", b"{}\n{}", b"{}null{}",
    b'{"a":1}\x00{"a":2}', b"\x00", b'{"a":1}\x00', b'{"a":1}\x00}', b"\xef\xbb\xbf{}", b'\xef\xbb\xbf{"a":1}',
    b'{"b":"\xff"}', b'{"\xff":1}', b'{"b":"\xed\xa0\x80"}', b'{"b":"\\ud800"}', b'{"b":"\\udc00\\ud800"}',
    b'{"b":"\\ud83d\\ude00"}', b'{"b":"\\u0000"}', b'{"b":"a\nb"}', b'{"b":"\\n\\t\\"\\\\\\/\\b\\f\\r"}',
    b'{\n "a" : 1 ,\r\n\t"b" : "x" }\n', b'{"a":1,"a":2}', b'{"a":"x","a":2}', b'{"a":2,"a":null}', b'{"\\u0061":5}',
    b'{"a":1', b'{"a":1,}', b'{,}', b'{"a"}', b'{"a":}', b'{"a" 1}', b'{a:1}', b"{'a':1}", b'{"a":01}', b'{"a":+1}',
    b'{"a":1.}', b'{"a":.5}', b'{"a":-}', b'{"a":1e}', b'{"a":1.0}', b'{"a":1e3}', b'{"a":1.5}', b'{"a":-0}',
    b'{"a":9223372036854775807}', b'{"a":-9223372036854775808}', b'{"a":9223372036854775808}',
    b'{"a":1' + b"0" * 5000 + b"}", b'{"c":1' + b"0" * 400 + b"}", b'{"c":1e400}', b'{"c":-1e400}', b'{"c":1e-400}',
    b'{"c":0.1}', b'{"c":123456789012345678901234567890.5}', b'{"c":NaN}', b'{"c":-Infinity}', b'{"c":Inf}',
    b'{"c":nan}', b'{"z":NaN}', b'{"z":-}', b'{"z":tru}', b'{"z":"\\x"}', b'{"z":"\\u12g4"}', b'{"z":[1,2,{}]}',
    b'{"z":[1,2,}', b'{"z":[1 2]}', b'{"z":{"a":7}}', b'{"z":[}', b'{"z":{]}', b'{"d":true}', b'{"d":"true"}',
    b'{"d":truex}', b'{"b":1}', b'{"b":[1,"\\u00e9"]}', b'{"b":"' + "é€😀".encode() + b'"}', b'{"":1}', b'{"a":1}x',
    b'{"z":' * 3000 + b"1" + b"}" * 3000, b'{"z":' + b"[" * 200_000 + b"]" * 200_000 + b"}", b"[" * 200_000,
    b'{"b":' + b"[" * 600 + b"]" * 600 + b"}", b'{"a":1}//x', b'{"a":/*x*/1}',
    b'{"c":1e-999999999}', b'{"z":1e-999999999}', b'{"a":1},"b":"x"', b'{"a":1}\nnull', b'null\n{"a":1}',
    "{\u00a0}".encode(), b"\xfe\xff\x00{",
]  # fmt: skip


def test_hostile_values_one_by_one_and_together() -> None:
    def acceptable(found: dict[str, Any] | None, value: bytes | None) -> bool:
        wanted = expected(value)
        return same(found, wanted) or (found is not None and wanted is None and value is not None and len(value) > 5000)

    for value in HOSTILE:
        rows, _ = rows_of(DECODER.decode(pa.array([value], pa.binary())), 1)
        assert acceptable(rows[0], value), (value[:80], rows[0], expected(value))
    good = b'{"a":7,"b":"x","c":0.5,"d":false}'
    mixed = [each for value in HOSTILE for each in (value, good, None)]
    rows, errors = rows_of(DECODER.decode(pa.array(mixed, pa.binary())), len(mixed))
    assert rows[1::3] == [json.loads(good)] * len(HOSTILE)
    assert rows[2::3] == [dict.fromkeys("abcd")] * len(HOSTILE)
    for value, row in zip(mixed, rows, strict=True):
        assert acceptable(row, value), value
    for error in errors.values():
        error.encode()


text = st.text(max_size=8)
names = st.sampled_from(["a", "b", "c", "d", "e", "aa", ""])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | text
nested = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=5
)
likely = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-(2**63), 2**63 - 1), "b": text, "c": st.floats(), "d": st.booleans(), "e": nested,
    },
)  # fmt: skip
objects = st.builds(
    lambda value, compact, ascii_only: json.dumps(
        value, ensure_ascii=ascii_only, separators=(",", ":") if compact else None
    ).encode(errors="surrogatepass"),
    likely | st.dictionaries(names, nested, max_size=5),
    st.booleans(),
    st.booleans(),
)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """An object with some of its bytes changed, left out or doubled."""
    value = bytearray(draw(objects))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(value)))
        piece = draw(
            st.binary(max_size=3) | st.sampled_from([b"{}", b"\n", b"\0", b'"', b"\\", b"}", b"{", b",", b" "])
        )
        value[at : at + draw(st.integers(0, 3))] = piece
    return bytes(value)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.none() | objects | broken() | st.binary(max_size=12) | st.sampled_from(HOSTILE[:60]), max_size=12))
@example([b"{}{}", b""])
@example([b'{"a":1', b"}"])
@example([b'{"e":', b'{"a":1}}', b"{}{}"])
def test_any_values(values: list[bytes | None]) -> None:
    rows, _ = rows_of(DECODER.decode(pa.array(values, pa.binary())), len(values))
    for value, row in zip(values, rows, strict=True):
        assert same(row, expected(value)), (value, row, expected(value))


@settings(max_examples=100, deadline=None)
@given(st.datetimes(), st.sampled_from(["", "Z", "+00:00", "-05:30", "+0530", "+01"]), st.sampled_from("T "))
def test_times(time: datetime.datetime, zone: str, between: str) -> None:
    shift = datetime.datetime.fromisoformat(f"2000-01-01T00:00:00{zone or 'Z'}").utcoffset()
    assert shift is not None
    try:
        wanted = time.replace(tzinfo=datetime.UTC) - shift
    except OverflowError:
        return
    found = one("t", spark.TimestampType(), json.dumps({"t": time.isoformat(between) + zone}))
    assert found == wanted
    if not zone:
        assert one("t", spark.TimestampNTZType(), json.dumps({"t": time.isoformat(between)})) == time
    assert one("t", spark.DateType(), json.dumps({"t": time.date().isoformat()})) == time.date()


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (spark.ByteType(), "127", 127),
        (spark.ByteType(), "128", "t: a whole number of 8 bits is wanted, not 128"),
        (spark.ShortType(), "-32768", -32768),
        (spark.IntegerType(), '"5"', 't: a whole number is wanted, not "5"'),
        (spark.LongType(), "true", "t: a whole number is wanted, not true"),
        (spark.FloatType(), "0.5", 0.5),
        (spark.StringType(), "1.50", "1.50"),
        (spark.StringType(), '{"x": [1, "é"]}', '{"x":[1,"é"]}'),
        (spark.BinaryType(), '"AAE="', b"\x00\x01"),
        (spark.BinaryType(), '"A"', 't: a string in base64 is wanted, not "A"'),
        (spark.TimestampType(), '"2013-01-01"', datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC)),
        (spark.TimestampType(), '"2013-02-30T00:00:00"',
         't: a time such as 2013-01-31T05:00:00Z is wanted, not "2013-02-30T00:00:00"'),
        (spark.TimestampType(), "17", "t: a time such as 2013-01-31T05:00:00Z is wanted, not 17"),
        (spark.DateType(), '"2012-02-29"', datetime.date(2012, 2, 29)),
        (spark.DateType(), '"1900-02-29"', 't: a date such as 2013-01-31 is wanted, not "1900-02-29"'),
        (spark.ArrayType(spark.LongType()), "[1, null, 3]", [1, None, 3]),
        (spark.ArrayType(spark.LongType()), '[1, "x"]', 't[1]: a whole number is wanted, not "x"'),
        (spark.MapType(spark.StringType(), spark.DoubleType()), '{"x": 1.5}', [("x", 1.5)]),
        (spark.StructType([spark.StructField("x", spark.LongType())]), '{"x": 1, "y": 2}', {"x": 1}),
        (spark.StructType([spark.StructField("x", spark.LongType())]), '{"x": "q"}',
         't.x: a whole number is wanted, not "q"'),
    ],
)  # fmt: skip
def test_types(kind: spark.DataType, text: str, value: Any) -> None:
    assert one("t", kind, f'{{"t": {text}}}') == value


@pytest.mark.parametrize("name", ['a"b', "a\\b", "a\nb", "", " ", "é", "a.b"])
def test_any_name(name: str) -> None:
    assert one(name, spark.LongType(), json.dumps({name: 5})) == 5


def test_rows_that_are_not_flat_are_not_looked_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows tell that others aren't flat either, and where most are a bad one doesn't make it all for nothing."""
    flat, nested, bad = b'{"a":1}', b'{"a":1,"e":[]}', b'{"a":"x"}'
    read: list[int] = []
    read_others: list[int] = []
    reader, decode = flat_json.FlatJson.read, json_decoder.JsonDecoder._decode

    def watched(self: Any, values: pa.Array) -> Any:
        read.append(len(values))
        return reader(self, values)

    def watched_decode(self: Any, values: pa.Array, *others: Any) -> Any:
        read_others.append(len(values))
        return decode(self, values, *others)

    monkeypatch.setattr(flat_json.FlatJson, "read", watched)
    monkeypatch.setattr(json_decoder.JsonDecoder, "_decode", watched_decode)
    for values, looked_at, others in (
        ([flat] * 1_000, [64, 1_000], []),
        ([nested] * 1_000, [64], [1_000]),
        ([*[flat] * 999, nested], [64, 1_000], [1]),
        ([*[flat] * 64, *[nested] * 900], [64, 964], [964]),
        ([*[flat] * 500, bad, None] * 2, [64, 1_004], [2]),
        ([flat, nested], [2], [2]),
        ([], [0], []),
    ):
        read.clear()
        read_others.clear()
        DECODER.decode(pa.array(values, pa.binary()))
        assert (read, read_others[:1]) == (looked_at, others)


def test_decimals() -> None:
    schema = spark.StructType([spark.StructField("p", spark.DecimalType(5, 2))])
    rows, errors = decoded(schema, b'{"p": 1.5}', b'{"p": "123.45"}', b'{"p": 1.555}', b'{"p": 1000}', b'{"p": null}')
    assert [None if row is None else str(row["p"]) for row in rows] == ["1.50", "123.45", None, None, "None"]
    assert errors[2] == "p: a number for decimal(5,2) is wanted, not 1.555"


@pytest.mark.parametrize(
    "text",
    [
        "1e-999999999", "1e999999999", "1e-77", "1e-39", "0e-99", "0e99", "-0.0", "1.230", "12e1", '"12.5"', '"1e2"',
        '"1_0"', '" 1"', '"１"', '""', '"."', '"1\\u0030"', "11140929885803050796750890380090991969",
        "785098694901509990303000.0641999900919e+5", "99999999999999999999.999999999999999999", "-" + "9" * 38,
        "0." + "0" * 37 + "1", "9" * 39, "123456789012345678", "1234567890123456789",
    ],
)  # fmt: skip
@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (18, 0), (19, 1), (38, 0), (38, 18), (38, 38)])
def test_decimals_are_exact_or_refused(text: str, precision: int, scale: int) -> None:
    plain = json.loads(text, parse_float=str, parse_int=str)
    expected = None
    if re.fullmatch("[-+]?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?", plain, re.ASCII):
        sign, digits, power = Decimal(plain).as_tuple()
        shift = int(power) + scale
        if not any(digits) or (precision <= 15 and not float(plain)):  # nearer to 0 than any double
            expected = Decimal(0)
        elif abs(shift) < 100:
            units = int("".join(map(str, digits))) * 10 ** max(shift, 0)
            whole, rest = divmod(units, 10 ** max(-shift, 0))
            if not rest and whole < 10**precision:
                expected = Decimal((sign, tuple(map(int, str(whole))), -scale))
    found = one("p", spark.DecimalType(precision, scale), f'{{"p":{text}}}')
    assert found == expected if expected is not None else str(found).startswith("p: a number for decimal(")


def test_keys_of_maps() -> None:
    numbers = spark.MapType(spark.IntegerType(), spark.IntegerType())
    assert one("m", numbers, '{"m":{"1":2}}') == [(1, 2)]
    assert one("m", numbers, '{"m":{"a":2}}') == "m: the key 'a': a whole number is wanted, not \"a\""
    assert one("m", spark.MapType(spark.VarcharType(3), spark.IntegerType()), '{"m":{"a":2}}') == [("a", 2)]


def test_columns_that_may_not_be_null() -> None:
    schema = spark.StructType([spark.StructField("a", spark.LongType(), nullable=False)])
    rows, errors = decoded(schema, b'{"a": 1}', b"{}", None)
    assert rows == [{"a": 1}, None, None]
    assert errors[1] == "a: there is none, and null isn't allowed"
    assert errors[2] == "there's no value, and the schema has columns that can't be null"


def test_structs_within_structs() -> None:
    inner = spark.StructType(
        [spark.StructField("x", spark.StringType()), spark.StructField("y", spark.ArrayType(spark.DateType()))]
    )
    schema = spark.StructType([spark.StructField("s", inner), spark.StructField("n", spark.LongType())])
    values = [
        b'{"s":{"y":["2013-01-01"],"x":"\\u00e9"},"n":1}',
        b'{"s":null}',
        b'{"s":{}}',
        b'{"s":[]}',
        b'{"s":{"y":1}}',
    ]
    rows, errors = decoded(schema, *values)
    assert rows[0] == {"s": {"x": "é", "y": [datetime.date(2013, 1, 1)]}, "n": 1}
    assert rows[1:3] == [{"s": None, "n": None}, {"s": {"x": None, "y": None}, "n": None}]
    assert errors == {3: "s: an object is wanted, not []", 4: "s.y: an array is wanted, not 1"}


ORDER = spark.StructType(
    [
        spark.StructField("a", spark.LongType(), nullable=False),
        spark.StructField("price", spark.DecimalType(9, 2)),
        spark.StructField("at", spark.TimestampType()),
        spark.StructField("due", spark.TimestampType()),
        spark.StructField("ratio", spark.DoubleType()),
        spark.StructField(
            "lines", spark.ArrayType(spark.StructType([spark.StructField("cost", spark.DecimalType(9, 2))]))
        ),
    ]
)


def order(number: int, **others: Any) -> bytes:
    plain = {
        "a": number, "price": 1.25, "at": "2013-01-31T05:00:00.123Z", "due": 1359608400123, "ratio": number / 8,
        "lines": [{"cost": 0.5}] * (number % 3),
    }  # fmt: skip
    return json.dumps(plain | others).encode()


@pytest.mark.parametrize(
    "not_plain",
    [
        b"nonsense", b'{"a":"x"}', b"{}", b" {\n} ", b' {"a":1}', b'{"a":1.0}', b'{"a":1}{"a":2}',
        b'{"a":1,"z":"\xff"}', None, b'{"price":1.25}', order(1, a=None), order(1, price=1.255), order(1, price=1e9),
        order(1, ratio=math.inf), order(1, at="2013-01-31T05:00:00.123456789Z"), order(1, at="yesterday"),
        order(1, due=1e30), order(1, at="0001-01-01T00:00:00+01:00"),
        order(1, lines=[{"cost": 1}, {"cost": 0.255}, None]),
    ],
)  # fmt: skip
def test_only_rows_that_are_not_plain_are_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch, not_plain: bytes | None
) -> None:
    """Half a million rows a second are read at once; in Python a twentieth of that."""
    read = decoder("json", ORDER, times=TimeFormats((("due", "timestamp_millis"),)))
    values: list[bytes | None] = [order(number) for number in range(1_000)]
    (alone,), errors_alone = rows_of(read.decode(pa.array([not_plain], pa.binary())), 1)
    for number in range(3, 1_000, 20):
        values[number] = not_plain
    values[14] = b"else"
    looked_at = []
    row_of = json_decoder.JsonDecoder._row

    def row(self: Any, value: bytes) -> Any:
        looked_at.append(value)
        return row_of(self, value)

    monkeypatch.setattr(json_decoder.JsonDecoder, "_row", row)
    rows, errors = rows_of(read.decode(pa.array(values, pa.binary())), len(values))
    assert sorted(looked_at, key=str) == sorted([b"else"] + [not_plain] * 50, key=str)
    assert errors.keys() - {14} == (set(range(3, 1_000, 20)) if errors_alone else set())
    assert [rows[number] for number in range(3, 1_000, 20)] == [alone] * 50
    assert [each["a"] for each in rows[::2] if each] == [number for number in range(0, 1_000, 2) if number != 14]


@pytest.mark.parametrize("text", ["0.1", "12345678901.2345", "1e3", "-0.0001", "99999999999.9999", "7"])
def test_decimals_that_doubles_have_are_read_at_once(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.delattr("kohort.spark.formats.json_decoder.JsonDecoder._row")
    assert one("p", spark.DecimalType(15, 4), f'{{"p":{text}}}') == Decimal(text)


def test_slices_and_chunks() -> None:
    values = pa.array([b"x", b'{"a":1}', b'{"a":2}', None], pa.binary())
    assert DECODER.decode(values.slice(1, 2)).columns.column(0).to_pylist() == [1, 2]
    assert DECODER.decode(values.slice(4)).columns.num_rows == 0
    assert DECODER.decode(pa.chunked_array([values[1:2], values[2:]])).columns.num_rows == 3


def test_schemas_that_cannot_be() -> None:
    with pytest.raises(FormatError, match="needs a column"):
        decoder("json", spark.StructType([]))
    with pytest.raises(FormatError, match="x is there twice"):
        decoder(
            "json",
            spark.StructType([spark.StructField("x", spark.LongType()), spark.StructField("x", spark.LongType())]),
        )
    with pytest.raises(FormatError, match="x: interval"):
        decoder("json", spark.StructType([spark.StructField("x", spark.DayTimeIntervalType())]))
    with pytest.raises(
        FormatError, match="'xml' isn't known; there are json, avro, csv, json_schema, protobuf, string, raw"
    ):
        decoder("xml", FLAT)


def test_the_encoder_writes_what_the_decoder_reads() -> None:
    schema = spark.StructType(
        [
            spark.StructField("t", spark.TimestampType()),
            spark.StructField("b", spark.BinaryType()),
            spark.StructField("m", spark.MapType(spark.StringType(), spark.LongType())),
            spark.StructField("s", spark.StringType()),
        ]
    )
    rows = pa.table(
        {
            "t": pa.array([0, 1_500], pa.timestamp("us", tz="UTC")),
            "b": [b"\x00", None],
            "m": pa.array([[("x", 1)], None], pa.map_(pa.string(), pa.int64())),
            "s": ["é", None],
        }
    )
    values = encoder("json", schema).encode(rows)
    assert values[0].as_py() == '{"t":"1970-01-01T00:00:00.000Z","b":"AA==","m":{"x":1},"s":"é"}'.encode()
    assert decoder("json", schema).decode(values).columns.to_pylist() == rows.to_pylist()
