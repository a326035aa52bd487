"""Columns made of bytes in Python, without what `pa.array` brings along."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.records.arrow import column_of_bytes


@given(st.lists(st.none() | st.binary(max_size=20), max_size=40))
def test_a_column_is_what_arrow_makes_of_the_values(values: list[bytes | None]) -> None:
    column = column_of_bytes(values, pa.binary())
    column.validate(full=True)
    assert column.equals(pa.array(values, pa.binary()))


def test_pandas_stays_out() -> None:
    program = """
import sys
import pyarrow as pa
from kohort.protocol.records.arrow import column_of_bytes
column_of_bytes([b"a", None], pa.binary())
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)
