"""Nexmark's queries as Kohort's programs, beside plain Spark over the same events."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark import batch, queries, topics
from benchmarks.nexmark.events import Shape, whole
from benchmarks.nexmark.results import Gathered
from benchmarks.nexmark.sources import Sources
from benchmarks.pipeline.watcher import result_of
from kohort.spark import StreamsApp
from kohort.testing.broker import Broker

from .applications import Heard, create_topics, read, run_until

EVENTS = 3_000
SHAPE = Shape(rate=30)
"""Half of the events are of another day."""
JOINS = ("q3", "q8")
"""Queries that join streams which others may read, too."""
IN_PLACE = ("q4", "q6", "q9", "q20")
"""Queries that join bids and auctions where they lie, so that nothing else in their application reads these."""


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([name for name in queries.NAMES if name not in (*JOINS, *IN_PLACE)], id="bids"),
        pytest.param(JOINS, id="joins"),
        *(pytest.param((name,), id=name, marks=[pytest.mark.long] if name != "q4" else []) for name in IN_PLACE),
    ],
)
def test_programs_give_what_a_batch_gives(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, names: Sequence[str]
) -> None:
    """Several in one application, so that it has to start but once."""
    servers = kohort_fresh_broker.bootstrap_servers
    batch.create_views(spark, whole(EVENTS, SHAPE))
    answers = {name: batch.answer(spark, name) for name in names}
    topics.create(servers, "nexmark", 2)
    create_topics(servers, *names)
    topics.fill(servers, "nexmark", EVENTS, SHAPE)
    app = StreamsApp("nexmark", bootstrap_servers=servers, state_dir=tmp_path)
    nexmark = Sources(app, "nexmark")
    for name in names:
        queries.program(name)(nexmark, name)
    heard, looked_at = Heard(), 0

    def differences(name: str) -> list[str]:
        query = batch.QUERIES[name]
        results = Gathered(answers[name], query.keys, query.clock)
        if records := read(servers, name):
            results.take([result_of(record.key(), record.value()) for record in records])
        return results.differences()

    def is_done() -> bool:
        nonlocal looked_at
        if len(heard.epochs) == looked_at:
            return False
        looked_at = len(heard.epochs)
        return not any(map(differences, names))

    run_until(app, spark, heard, is_done)
    assert not heard.failures
    assert {name: differences(name) for name in names} == {name: [] for name in names}


@pytest.mark.long
def test_every_query_can_be_asked_of_a_batch(spark: SparkSession) -> None:
    batch.create_views(spark, whole(EVENTS, SHAPE))
    answers: dict[str, pa.Table] = {name: batch.answer(spark, name) for name in batch.QUERIES}
    assert list(answers) == [f"q{number}" for number in range(23)]
    for name, answer in answers.items():
        assert answer.num_rows > 0, name
        keys = batch.QUERIES[name].keys
        assert not keys or answer.group_by(list(keys)).aggregate([]).num_rows == answer.num_rows, name
