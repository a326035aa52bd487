"""Base64 of whole columns, beside the standard library."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.formats.base64_columns import base64_texts, unbase64

columns = st.lists(st.none() | st.binary(max_size=40), max_size=12)


@given(columns, st.integers(0, 3))
def test_texts_are_those_of_the_standard_library(plain: list[bytes | None], skipped: int) -> None:
    texts = base64_texts(pa.array(plain, pa.binary())[skipped:])
    texts.validate(full=True)
    assert texts.to_pylist() == [None if each is None else base64.b64encode(each).decode() for each in plain[skipped:]]


@given(columns, st.integers(0, 3))
def test_texts_are_read(plain: list[bytes | None], skipped: int) -> None:
    text = pa.array([None if each is None else base64.b64encode(each).decode() for each in plain], pa.string())
    made = unbase64(text[skipped:])
    made.validate(full=True)
    assert made.to_pylist() == plain[skipped:]


@pytest.mark.parametrize("text", ["abc", "ab=d", "====", "a-_=", "abcd\n", "=abc", "é==", "ab==abcd", "abc===="])
def test_what_is_not_base64_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        unbase64(pa.array(["AAAA", text]))


@given(st.lists(st.binary(max_size=9), max_size=5))
def test_any_bytes_are_read_as_the_standard_library_reads_them_or_refused(texts: list[bytes]) -> None:
    try:
        expected = [base64.b64decode(each, validate=True) for each in texts]
    except ValueError:
        with pytest.raises(ValueError, match="base64"):
            unbase64(pa.array(texts, pa.binary()))
    else:
        assert unbase64(pa.array(texts, pa.binary())).to_pylist() == expected
