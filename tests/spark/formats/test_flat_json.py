"""The compiled loop for flat JSON: what it reads is what Python reads, and what it can't it leaves to others."""

from __future__ import annotations

import json
import math
import random
import re
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kohort.spark.formats.flat_json import FlatJson, flat_json
from kohort.spark.formats.json_kernel import NAMES_SEEN

COLUMNS = pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64()), ("d", pa.bool_()), ("é", pa.int8())])
READER = FlatJson(COLUMNS)


def read(*values: bytes | None, reader: FlatJson = READER) -> list[dict[str, Any] | None]:
    """The rows that were read; None for the others."""
    found, good = reader.read(pa.array(values, pa.binary()))
    found.validate(full=True)
    return [row if is_read else None for row, is_read in zip(found.to_pylist(), good.tolist(), strict=True)]


def row(**fields: Any) -> dict[str, Any]:
    return dict.fromkeys(COLUMNS.names) | fields


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("{}", row()),
        ("{ \t}\r\n ", row()),
        ('{"a":1,"b":"x","c":0.5,"d":false,"é":-7}', row(a=1, b="x", c=0.5, d=False, é=-7)),
        ('{\n "a" : -0 ,\t"d":true , "c" : -0.0 }\r\n', row(a=0, c=-0.0, d=True)),
        ('{"a":null,"b":null,"c":null,"d":null}', row()),
        ('{"a":9223372036854775807}', row(a=2**63 - 1)),
        ('{"a":-9223372036854775807}', row(a=-(2**63) + 1)),
        ('{"é":-128}', row(é=-128)),
        ('{"c":1}', row(c=1.0)),
        ('{"c":0.30000000000000004}', row(c=0.1 + 0.2)),
        ('{"c":-1.7976931348623157e+30}', row(c=-1.7976931348623157e30)),
        ('{"c":5E-99}', row(c=5e-99)),
        ('{"b":""}', row(b="")),
        ('{"b":"é€😀 and more than eight bytes"}', row(b="é€😀 and more than eight bytes")),
        ('{"other":"é","one":1e5,"more":-0.5,"z":null,"b":"x"}', row(b="x")),
        ('{"z":123456789012345678901234567890}', row()),
        ('{"a":1,"a":2}', row(a=2)),
        ('{"a":1,"a":null}', row()),
    ],
)
def test_what_is_read(text: str, wanted: dict[str, Any]) -> None:
    assert repr(read(text.encode())) == repr([wanted])  # which tells zeros apart
    assert read(b"{}", text.encode(), None, text.encode(), b"[]") == [row(), wanted, row(), wanted, None]


@pytest.mark.parametrize(
    "text",
    [
        "", " ", " {}", "{}x", "{}{}", "{", '{"', '{"a', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{,}",
        '{"a":1]', '{"a" 1}', '{"a":}', "{a:1}", '{"a":1 2}', '{"a":"1"}', '{"a":1.0}', '{"a":1e2}', '{"a":01}',
        '{"a":-}', '{"a":+1}', '{"a":true}', '{"a":9223372036854775808}', '{"a":-9223372036854775808}', '{"é":128}',
        '{"a":9300000000000000000}', '{"a":18446744073709551617}',
        '{"é":-129}', '{"b":1}', '{"b":true}', '{"b":"\\n"}', '{"b":"\n"}', '{"b":"12345678\\n"}',
        '{"b":"1234567\x00"}', '{"b":"x}', '{"c":"1"}', '{"c":1.}', '{"c":.5}', '{"c":1e}', '{"c":1e+}', '{"c":NaN}',
        '{"c":Infinity}', '{"c":1e100}', '{"c":00.5}', '{"c":1' + "0" * 100 + "}", '{"d":1}', '{"d":truf}',
        '{"d":tru', '{"d":fals', '{"a":nul', '{"d":True}', '{"d":nulx}', '{"z":{}}', '{"z":[]}', '{"z":"\\""}',
        '{"\\u0061":1}', '{"z":-a}', '{"z":.1}', '{"z":1e999}', '{"a":1}\x00',
    ],
)  # fmt: skip
def test_what_is_left_to_others(text: str) -> None:
    assert read(text.encode()) == [None]


@pytest.mark.parametrize("value", [b'{"b":"\xff"}', b'{"b":"\xed\xa0\x80"}', b'{"\xff":1}', b'{"z":"1234567\xc3"}'])
def test_what_is_not_utf8_is_left_to_others(value: bytes) -> None:
    assert read(b"{}", value, value, b'{"b":"x"}') == [row(), None, None, row(b="x")]


def test_a_value_ends_where_it_ends() -> None:
    """Of each value that ends too soon the rest follows, in the same buffer; names have been seen in a value before."""
    whole = '{"a":12,"b":"more than eight","other":null,"c":0.5e1,"d":false,"é":1} '.encode()
    for end in range(len(whole)):
        values = pa.array([b"", whole, whole[:end], whole[end:], whole], pa.binary())
        _, good = READER.read(values.slice(1, 2))
        assert good.tolist() == [True, end >= len(whole) - 1], whole[:end]


def test_nothing_is_read_beyond_the_buffer() -> None:
    """Of values that end where a page does, before one that nobody may read: that would end the process."""
    done = subprocess.run([sys.executable, "-c", BEYOND], check=False, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "all is read\n"), done.stderr


BEYOND = """
import ctypes
import mmap

import numpy as np
import pyarrow as pa

from kohort.spark.formats.flat_json import FlatJson

page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + page), page, 0) == 0
reader = FlatJson(pa.struct([("a", pa.int64()), ("more than 8", pa.string()), ("c", pa.float64()), ("d", pa.bool_())]))
whole = '{"a":12,"more than 8":"more than eight é","other":null,"c":0.5e1,"d":false,"":true} '.encode()
for text in (whole, b'{"a":1}', b'{"more than 8":"x"}', b'{"c":1.5}', b'{"d":true}'):
    for end in range(len(text) + 1):
        for before in (b"", text):
            size = len(before) + end
            ctypes.memmove(start + page - size, before + text[:end], size)
            ends = np.array([0, len(before), size], np.int32)
            content = pa.foreign_buffer(start + page - size, size, memory)
            reader.read(pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(ends), content]))
print("all is read")
"""


def test_objects_of_many_fields_in_any_order() -> None:
    """More than those whose places are remembered, names that begin alike, and one name within another."""
    names = [f"{'x' * (number % 20)}{number}" for number in range(3 * NAMES_SEEN)]
    reader = FlatJson(pa.struct([(name, pa.int64()) for name in names[::2]]))
    draw, rows = random.Random(1), []
    for _ in range(20):
        draw.shuffle(names)
        rows.append({name: draw.randrange(1_000) for name in names[: draw.randrange(len(names))]})
    found = read(*(json.dumps(each).encode() for each in rows), reader=reader)
    for given_row, each in zip(rows, found, strict=True):
        assert each is not None
        assert each == {name: given_row.get(name) for name in each}


def test_which_columns_it_takes() -> None:
    assert flat_json(COLUMNS) is not None
    assert flat_json(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64()))])) is None
    assert flat_json(pa.struct([("a", pa.struct([("b", pa.int64())]))])) is None


names = st.sampled_from(["a", "b", "c", "d", "é", "other", ""])
fields = st.none() | st.booleans() | st.integers() | st.integers(-200, 200) | st.floats() | st.text(max_size=20)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.dictionaries(names, fields), max_size=8), st.sampled_from([(",", ":"), (" , ", " :\n")]), st.booleans()
)
@example([{"c": 2**53 + 1, "a": 2**53 + 1}], (",", ":"), False)
def test_any_objects(rows: list[dict[str, Any]], separators: tuple[str, str], ascii_only: bool) -> None:
    texts = [json.dumps(each, ensure_ascii=ascii_only, separators=separators) for each in rows]
    for given_row, each in zip(rows, read(*(text.encode(errors="surrogatepass") for text in texts)), strict=True):
        assert (each is not None) == all(may_be_read(name, value, ascii_only) for name, value in given_row.items())
        if each is not None:
            wanted = row() | {name: value for name, value in given_row.items() if name in each}
            if wanted["c"] is not None:
                wanted["c"] = float(wanted["c"])
            assert repr(each) == repr(wanted)


def may_be_read(name: str, value: Any, ascii_only: bool) -> bool:
    """Whether the loop reads this field."""
    written = json.dumps(name + (value if isinstance(value, str) else ""), ensure_ascii=ascii_only)
    if "\\" in written or any(0xD800 <= ord(each) < 0xE000 for each in written):
        return False
    if isinstance(value, float) and (not math.isfinite(value) or re.search(r"e[-+]?\d{3}", repr(value))):
        return False
    if name not in COLUMNS.names or value is None:
        return True
    match name:
        case "a":
            return type(value) is int and -(2**63) < value < 2**63
        case "é":
            return type(value) is int and -128 <= value < 128
        case "b":
            return isinstance(value, str)
        case "c":
            return type(value) in (int, float) and len(json.dumps(value)) <= 100
        case _:
            return isinstance(value, bool)
