"""Output values, spliced of the store's keys and values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.jobs.output_values import output_values

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20)
ANY = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(["a", "state"]), each)
)
KEYS = st.dictionaries(st.sampled_from(["window", "origin", 'q"{}']), SCALARS)
TRICKY = ',"state":{'


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@given(
    st.lists(
        st.tuples(
            KEYS,
            st.dictionaries(st.sampled_from(["n", "mean", TRICKY]), ANY, min_size=1),
            st.dictionaries(st.text(max_size=4), SCALARS | st.just(TRICKY)),
        ),
        max_size=5,
    )
)
def test_the_state_is_cut_and_the_key_comes_first(
    groups: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]],
) -> None:
    keys = pa.array([compact(key) for key, _, _ in groups], pa.binary())
    values = pa.array([compact({**value, "state": state}) for _, value, state in groups], pa.binary())
    assert output_values(keys, values).to_pylist() == [compact({**key, **value}) for key, value, _ in groups]


def test_deletions_stay_deletions() -> None:
    keys = pa.array([b'{"a":1}', b"{}"], pa.binary())
    values = pa.array([None, b'{"n":1,"state":{}}'], pa.binary())
    assert output_values(keys, values).to_pylist() == [None, b'{"n":1}']


def test_tables_columns_in_chunks_do() -> None:
    keys = pa.chunked_array([pa.array([b'{"a":1}'], pa.binary()), pa.array([b'{"a":2}'], pa.binary())])
    values = pa.chunked_array([pa.array([b'{"n":1,"state":{}}'] * 2, pa.binary())])
    assert output_values(keys, values).to_pylist() == [b'{"a":1,"n":1}', b'{"a":2,"n":1}']
