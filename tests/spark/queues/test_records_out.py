"""What is written of results: as it is row by row, whichever rows a format can't hold."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.spark.formats import encoder
from kohort.spark.program.compiled import ToTopic
from kohort.spark.queues.records_out import output_records

from .fakes import VALUES, queue

NO_NULLS = json.dumps({"type": "record", "name": "ids", "fields": [{"name": "id", "type": "long"}]})
QUEUE = queue(outputs=[ToTopic("ids", None, "avro", ("id",), NO_NULLS), ToTopic("lines", None, "csv", ("id",))])


@given(st.lists(st.none() | st.integers(0, 9), min_size=1))
def test_each_row_is_written_or_said_to_be_unwritable(ids: list[int | None]) -> None:
    made = output_records(QUEUE, pa.table({"id": pa.array(ids, pa.int64())}))
    nulls = {row for row, each in enumerate(ids) if each is None}
    assert set(made.unwritable) == nulls
    assert all(why.startswith("can't be written to ids as avro: ") for why in made.unwritable.values())
    written, lines = (table["value"].to_pylist() for _, table in made.topics)
    writing = encoder("avro", VALUES, NO_NULLS)
    for row, each in enumerate(ids):
        alone = pa.table({"id": pa.array([each], pa.int64())})
        assert written[row] == (None if each is None else writing.encode(alone)[0].as_py())
    assert lines == [b"" if each is None else str(each).encode() for each in ids]


def test_of_no_results_nothing_is_written() -> None:
    made = output_records(QUEUE, pa.table({"id": pa.array([], pa.int64())}))
    assert (made.topics, made.unwritable) == ([], {})
