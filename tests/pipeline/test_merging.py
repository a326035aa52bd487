"""Rows are merged in the epoch that makes them, where the task that has their group runs beside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kohort.protocol.records.partitioner import partitions_of
from kohort.spark.epoch import EpochInput, EpochOutput, Mergers, OffsetRange
from kohort.spark.jobs.plans import Plans
from kohort.spark.program.compiled import Aggregate, Branch, CompiledSubtopology, PartialsInput, ToPartials
from tests.marks import long
from tests.pipeline.jobs_harness import PARTITIONS, RECORDS, JobsHarness
from tests.pipeline.test_jobs import FLIGHTS, expected, through

HOUR = 3_600_000


def _here(output: EpochOutput) -> pa.Table:
    return output.rows[0].filter(pc.greater_equal(output.rows[0]["partition"], 0))


def _others(output: EpochOutput) -> pa.Table:
    """Those that go to the topic, with the partitions of it."""
    rows = output.rows[0].filter(pc.less(output.rows[0]["partition"], 0))
    partitions = pc.cast(pc.subtract(-1, rows["partition"]), pa.int32())
    return pa.Table.from_arrays([partitions, rows["timestamp"], rows["key"], rows["value"]], schema=RECORDS)


def _routed(keys: list[bytes]) -> list[int]:
    """Where rows of a store belong, by their keys, which have the window before what they are routed by."""
    if not keys:
        return []
    routes = [json.dumps({"origin": json.loads(key)["origin"]}, separators=(",", ":")) for key in keys]
    found: list[int] = partitions_of(pa.array(routes), PARTITIONS).tolist()
    return found


@pytest.mark.parametrize("here", [(0, 1), (1,)], ids=["all", "some"])
@pytest.mark.parametrize("parallel", [*long(False), True])
def test_what_is_merged_at_once_equals_what_goes_through_the_topic(
    harness: JobsHarness, parallel: bool, here: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if parallel:
        monkeypatch.setattr("kohort.spark.jobs.subtopology_jobs.SMALL_EPOCH", 0)
    spec = harness.spec("by-origin", "origin")
    harness.stores.clear()
    topic, between = harness.topic(), harness.topic()
    first = harness.jobs(through(harness, harness.source(topic), ToPartials(between, spec)))
    second = harness.jobs(
        CompiledSubtopology("1", PartialsInput(between, spec), (), (Branch((), Aggregate(spec, ())),))
    )
    mergers = {0: Mergers(PARTITIONS, dict.fromkeys(here))}
    shown: dict[str, Any] = {}
    for epoch, some in enumerate((FLIGHTS[:20], FLIGHTS[20:], [])):
        start, middle = max(harness.ends[topic]), list(harness.ends[between])
        harness.send(topic, some)
        done = first.run(replace(harness.epoch_input(topic, epoch, start), mergers=mergers))
        assert done.statistics.records == len(some)
        assert done.rows[0].num_rows == len({(row["origin"], row["at"]) for _, _, row in some})
        merged, others = _here(done), _others(done)
        assert set(merged["partition"].to_pylist()) <= set(here)
        if len(here) == PARTITIONS:
            assert not others.num_rows
        for number, time in done.statistics.merged_times[0].items():
            assert time == pc.max(merged.filter(pc.equal(merged["partition"], number))["timestamp"]).as_py()
        shown = harness.keep(spec.name, merged)
        for rows in (merged, others):
            assert rows["partition"].to_pylist() == _routed(rows["key"].to_pylist())
        if others.num_rows:
            harness._send(between, others)
        ranges = [OffsetRange(between, number, middle[number], end) for number, end in enumerate(harness.ends[between])]
        shown = harness.keep(spec.name, second.run(EpochInput(epoch, tuple(ranges))).rows[0])
    assert shown == expected("origin", [row for _, _, row in FLIGHTS])
    if not parallel:
        assert ("0", 0, 1, True) in first._reusable


def test_jobs_are_warm_for_epochs_with_mergers(harness: JobsHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = harness.topic()
    terminal = ToPartials(harness.topic(), harness.spec("by-origin-warm", "origin"))
    jobs = harness.jobs(through(harness, harness.source(topic), terminal))
    jobs.warm_up()
    monkeypatch.setattr(Plans, "branch", None)  # none is built any more
    harness.send(topic, FLIGHTS)
    mergers = {0: Mergers(PARTITIONS, dict.fromkeys(range(PARTITIONS)))}
    assert _here(jobs.run(replace(harness.epoch_input(topic), mergers=mergers))).num_rows


def test_what_comes_late_to_the_task_that_merges_is_left_out(harness: JobsHarness) -> None:
    spec = replace(harness.spec("by-origin-late", "origin", grace="2 hours"), emit="close")
    harness.stores.clear()
    topic, between = harness.topic(), harness.topic()
    jobs = harness.jobs(through(harness, harness.source(topic), ToPartials(between, spec)))
    harness.send(topic, FLIGHTS[:20])

    def run(*times: int | None) -> EpochOutput:
        mergers = Mergers(PARTITIONS, dict(enumerate(times)))
        return jobs.run(replace(harness.epoch_input(topic), mergers={0: mergers}))

    in_time = run(None, None)
    assert _here(in_time).num_rows == 3 and not in_time.statistics.late
    long_after = pc.max(in_time.rows[0]["timestamp"]).as_py() + 10_000 * HOUR
    late = run(long_after, long_after)
    assert (late.rows[0].num_rows, late.statistics.late) == (0, 20)
    assert late.statistics.merged_times == {0: {}}
    some = run(long_after)
    assert not _here(some).num_rows
    assert _others(some).num_rows == _here(in_time).filter(pc.equal(_here(in_time)["partition"], 1)).num_rows
