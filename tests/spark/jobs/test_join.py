"""The join stage beside a join in plain Python."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.jobs.stages.join import TableJoin, join_stage
from kohort.spark.program.internal_columns import KEY, PARTITION
from tests.spark.jobs.fakes import FakeRpc

ROWS = st.lists(st.tuples(st.integers(0, 2), st.none() | st.sampled_from(["", "a", "b", "c", "ü"])), max_size=20)
TABLE = st.dictionaries(
    st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "b", "ü"])), st.none() | st.text(max_size=5)
)


@given(ROWS, TABLE, st.booleans(), st.booleans())
def test_rows_get_the_columns_of_their_key(
    rows: list[tuple[int, str | None]], table: dict[tuple[int, str], str | None], inner: bool, is_global: bool
) -> None:
    rpc = FakeRpc()
    for (partition, key), name in table.items():
        where = None if is_global else partition
        rpc.stores.setdefault(("t", where), {})[key.encode()] = json.dumps({"k": key, "name": name}).encode()
    batch = pa.RecordBatch.from_pydict(
        {
            "row": pa.array(range(len(rows))),
            PARTITION: pa.array([partition for partition, _ in rows], pa.int32()),
            KEY: pa.array([key for _, key in rows], pa.string()),
        }
    )
    table_join = TableJoin("t", pa.schema([pa.field("name", pa.string())]), "_j_", inner, is_global)
    found = [row for each in join_stage(rpc.context, table_join)(iter([batch])) for row in each.to_pylist()]
    expected: list[dict[str, Any]] = []
    for number, (partition, key) in enumerate(rows):
        value = None if key is None else rpc.stores.get(("t", None if is_global else partition), {}).get(key.encode())
        if value is not None or not inner:
            name = None if value is None else json.loads(value)["name"]
            expected.append({"row": number, PARTITION: partition, "_j_name": name})
    assert found == expected
    assert len(rpc.asked) == len(
        {(None if is_global else partition, key) for partition, key in rows if key is not None}
    )


def test_a_join_may_only_filter() -> None:
    rpc = FakeRpc({("t", None): {b"a": b'{"name":"x"}'}})
    batch = pa.RecordBatch.from_pydict({KEY: pa.array(["a", "b"]), "x": pa.array([1, 2])})
    table_join = TableJoin("t", pa.schema([]), "_j_", inner=True, is_global=True)
    (found,) = join_stage(rpc.context, table_join)(iter([batch]))
    assert found.to_pylist() == [{"x": 1}]
