"""Keys have the same text in Arrow as in Spark: by it records are looked for, and sent on."""

from __future__ import annotations

import decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from kohort.spark.jobs.arrow_key_encoding import group_keys, key_texts
from kohort.spark.jobs.key_encoding import key_text, store_key
from kohort.spark.jobs.session_settings import session_settings
from kohort.spark.program.compiled import AggregateSpec, Route

CONTROL = "".join(map(chr, range(0x21))) + '"\\/\x7f\x80\u2028€😀'
MICROS = (
    0, 1, -1, 1_500_000, 1_356_998_400_123_000, 500_000_000_000_010, -62_135_596_800_000_001, -62_198_755_199_999_995,
    253_402_300_800_000_000, 9_000_000_000_000_000_000, -9_000_000_000_000_000_000,
)  # fmt: skip
DECIMALS = ("0", "0.0000000001", "-0.0000001", "12.5", "123456789012345678.1234567890", "0.000001")
DAYS = (0, 15_706, -719_162, -719_529, 2_932_897, 2**31 - 1, -(2**31))


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_keys_have_the_same_text_in_arrow_as_in_spark(spark: SparkSession, ansi: str) -> None:
    selected = {
        "s": ("string", ["", "x", "ü,@", CONTROL]),
        'o"d\n\\d': ("string", ["a"]),
        "b": ("boolean", [True, False]),
        "t": ("tinyint", [-128, 7]),
        "i": ("int", [0, -5]),
        "l": ("bigint", [2**63 - 1, -(2**63)]),
        "d0": ("decimal(38,10)", [decimal.Decimal(each) for each in DECIMALS]),
        "d1": ("decimal(7,7)", [decimal.Decimal("0.0000001"), decimal.Decimal(0)]),
        "d2": ("decimal(9,0)", [decimal.Decimal(120)]),
        "day": ("int", list(DAYS)),
        "at": ("bigint", list(MICROS)),
    }  # fmt: skip
    count = max(len(values) for _, values in selected.values()) + 1
    rows: list[tuple[Any, ...]] = [
        tuple(values[number % len(values)] if number < count - 1 else None for _, values in selected.values())
        for number in range(count)
    ]
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with session_settings(spark, 1):
            schema = ", ".join(f"`{name}` {kind}" for name, (kind, _) in selected.items())
            made = spark.createDataFrame(rows, schema)
            made = made.selectExpr(
                *[f"`{name}`" for name in selected if name not in ("day", "at")],
                "date_from_unix_date(day) as day", "timestamp_micros(at) as at",
                "cast(timestamp_micros(at) as timestamp_ntz) as ntz",
            ).cache()  # fmt: skip
            table = made.toArrow()
            names = made.columns
            group = tuple((field.name, field.dataType) for field in made.schema.fields)
            stored = store_key(cast(AggregateSpec, SimpleNamespace(group=group, window=None)))
            wanted = made.select(*[key_text([name], Route.TEXT) for name in names], key_text(names, Route.TEXT), stored)
            expected = wanted.toArrow()
            made.unpersist()
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)
    plain = ansi == "true"
    for number, name in enumerate(names):
        text = key_texts([name], [table[name].combine_chunks()], plain_decimals=plain)
        assert text.to_pylist() == expected.column(number).to_pylist(), name
    several = key_texts(names, [table[name].combine_chunks() for name in names], plain_decimals=plain)
    assert several.to_pylist() == expected.column(len(names)).to_pylist()
    stored_keys = group_keys(names, [table[name].combine_chunks() for name in names])
    assert stored_keys.to_pylist() == expected.column(len(names) + 1).to_pylist()
