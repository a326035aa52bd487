"""Rows and columns, between the client and files, are the same byte for byte."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kohort.cli.data import column_path, row_path
from kohort.cli.data.errors import DataError
from kohort.cli.data.pipes import Interrupter
from kohort.cli.data.read_json import read_json, read_json_records
from kohort.cli.data.record_path import Block, RecordPath
from kohort.cli.data.source import Source
from kohort.cli.data.template import FIELDS, parse_template
from kohort.client.consuming.decoding import with_place
from kohort.client.types import Record, TopicPartition
from kohort.protocol.records.batch import read_header
from kohort.protocol.records.columns import decode_columns
from kohort.protocol.records.rows import encode_rows

PLACE = TopicPartition('a "topic"', 7)
NULL = b"n"

ODD_TEXT = st.sampled_from([b"", b"n", b":", b"\x7f", b'"\\\n\x00\x1f', b"\xff", b"\xed\xa0\x80", "ü\u2028🜨".encode()])
DATA = st.none() | ODD_TEXT | st.binary(max_size=6) | st.text(max_size=6).map(str.encode)
HEADERS = st.lists(st.tuples(st.text(max_size=3), DATA), max_size=3)
YEAR = 31_556_952_000
TIMES = (
    st.sampled_from([-1, 0, 253_402_300_800_000, -62_167_219_200_001, 971_890_963_199_999, 971_890_963_200_000])
    | st.integers(-40_000 * YEAR, 40_000 * YEAR)
    | st.integers(-(2**62), 2**62)
)
RECORDS = st.lists(st.tuples(TIMES, DATA, DATA, HEADERS), min_size=1, max_size=8)


def both(rows: list[tuple[Any, ...]]) -> tuple[list[Record], Any]:
    """Records of a partition, as `poll` and `poll_batch` give them."""
    batch = bytes(encode_rows(*map(list, zip(*rows, strict=True)), base_offset=5))
    columns = decode_columns(batch, [read_header(batch)]).records
    return [Record(*PLACE, 5 + at, *row) for at, row in enumerate(rows)], with_place(columns, PLACE)


@given(RECORDS, st.lists(st.sampled_from([*map("%{}".format, FIELDS), ":", r"\xff"]), min_size=1), st.integers(0, 8))
def test_text(rows: list[tuple[Any, ...]], template: list[str], skipped: int) -> None:
    records, batch = both(rows)
    parts = parse_template("".join(template))
    rendered = row_path.text(parts, NULL)(records[skipped:])
    assert rendered == bytes(column_path.text(parts, NULL)(batch[skipped:]))


@given(RECORDS, st.integers(0, 7))
def test_json(rows: list[tuple[Any, ...]], skipped: int) -> None:
    records, batch = both(rows)
    rendered = row_path.render_json(records[skipped:])
    assert rendered == bytes(column_path.render_json(batch[skipped:]))
    for line in rendered.splitlines():
        json.loads(line)


Read = Callable[[RecordPath, Source], Iterator[Block]]


def blocks(path: RecordPath, data: bytes, read: Read) -> tuple[list[Block], str | None]:
    """What is read of a file, and what is wrong with it."""
    found: list[Block] = []
    with tempfile.TemporaryFile() as file, Interrupter() as interrupter:
        file.write(data)
        file.seek(0)
        try:
            found.extend(read(path, Source("file", file.fileno(), interrupter)))
        except DataError as error:
            return found, str(error)
    return found, None


def sent(block: Any) -> list[tuple[Any, ...]]:
    """The records of a block: value, key, timestamp (ms) and headers."""
    if not hasattr(block, "batch"):
        nulls, empty = [None] * len(block), [[]] * len(block)
        headers = [list(map(tuple, each)) for each in block.headers or empty]
        return list(zip(block.values, block.keys or nulls, block.timestamps or nulls, headers, strict=True))
    batch = block.batch
    if "timestamp" in batch.schema.names:
        at = batch.schema.names.index("timestamp")
        batch = batch.set_column(at, "timestamp", batch.column(at).cast("int64"))
    return [
        (
            row.get("value"),
            row.get("key"),
            row.get("timestamp"),
            [(each["key"], each["value"]) for each in row.get("headers") or ()],
        )
        for row in batch.to_pylist()
    ]


def check_read(data: bytes, read: Read, *, named: bool) -> None:
    (columns, wrong), (rows, also_wrong) = blocks(column_path, data, read), blocks(row_path, data, read)
    assert also_wrong == wrong
    assert [len(block) for block in rows] == [len(block) for block in columns]
    for one, other in zip(rows, columns, strict=True):
        one, other = one.with_nulls(NULL), other.with_nulls(NULL)
        if named:
            one, other = one.with_headers([("h", b"1")]), other.with_headers([("h", b"1")])
        assert one.size() == other.size()
        assert sent(one) == sent(other)
        assert sent(one[1:3]) == sent(other[1:3]) == sent(one)[1:3]


LINES = st.lists(st.lists(ODD_TEXT | st.binary(max_size=3), max_size=4).map(b"".join)).map(b"\n".join)


@given(LINES, st.sampled_from([None, b":", b"::", b"\xff"]), st.booleans())
def test_lines(data: bytes, separator: bytes | None, named: bool) -> None:
    check_read(data, lambda path, source: path.read_lines(source, separator), named=named)


JSON_TEXTS = st.none() | st.text(max_size=4) | st.sampled_from(["n", "/w==", "="]) | st.integers() | st.booleans()
JSON_RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "key": JSON_TEXTS,
        "value": JSON_TEXTS,
        "value_encoding": st.sampled_from([None, "base64"]),
        "timestamp": st.none() | st.integers(-(2**64), 2**64),
        "headers": st.lists(st.fixed_dictionaries({"key": st.text(max_size=2), "value": JSON_TEXTS}), max_size=2),
    },
)
JSON_LINES = st.lists(JSON_RECORDS.map(json.dumps) | st.sampled_from(["", "{", "1"])).map("\n".join).map(str.encode)


@given(JSON_LINES, st.booleans())
def test_json_input(data: bytes, named: bool) -> None:
    check_read(data, lambda path, source: map(path.block, read_json(source)), named=named)
    check_read(data, lambda path, source: map(path.block, read_json(source, "value")), named=named)
    check_read(data, lambda path, source: map(path.block, read_json(source, "value", null_keys=True)), named=named)
    check_read(data, lambda path, source: map(path.block, read_json_records(source)), named=False)
