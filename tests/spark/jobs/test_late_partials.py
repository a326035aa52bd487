"""Partials that come after their window is closed where they are merged: which ones, whatever the epochs are."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from unittest import mock

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kohort.client.config import ClientConfig
from kohort.spark import reading
from kohort.spark.epoch import ROWS_SCHEMA, OffsetRange
from kohort.spark.jobs.send_order import in_order
from kohort.spark.jobs.stages.merge import by_time
from kohort.spark.jobs.stages.state_lookup import StateLookup, read_partials_stage
from kohort.spark.program.internal_columns import KEY, RECORDS, STREAM_TIME, TIMESTAMP
from kohort.spark.runtime.window_closing import window_text
from tests.spark.jobs.fakes import FakeReader, FakeRpc, splits
from tests.spark.jobs.windowed import GRACE, MINUTE, SIZE, SLIDE, stream_times, windows_at

CLOSING = StateLookup("s", pa.schema([pa.field("n", pa.int64())]), SIZE + GRACE)
MINUTES = st.lists(st.integers(0, 60), min_size=1, max_size=24)
CUTS = st.sets(st.integers(1, 40), max_size=6)

Partial = tuple[int, int]
"""The window's start, and the greatest time of its rows."""


def merged(partials: Sequence[Partial], cuts: set[int]) -> tuple[list[str], int]:
    """Which partials are merged if epochs end there, and how many come late."""
    log = [
        (0, offset, time, b'{"window":"%s"}' % window_text(start).encode(), b'{"records":1,"state":{"n":1}}')
        for offset, (start, time) in enumerate(partials)
    ]
    rpc = FakeRpc()
    kept: list[str] = []
    late = 0
    bounds = [0, *sorted(cuts), len(log) + 40]
    stage = read_partials_stage(rpc.context, ClientConfig(bootstrap_servers="127.0.0.1:1"), CLOSING)
    with mock.patch.object(reading, "shared", lambda servers: FakeReader(log), create=True):
        for start, end in itertools.pairwise(bounds):
            rpc.ranges = (OffsetRange("t", 0, start, end),)
            kept += [row[KEY] for batch in stage(splits(0)) for row in batch.to_pylist() if row[RECORDS]]
            read = rpc.reports["rows"]
            late += read.late
            for time in read.max_times.values():
                rpc.stream_times = {0: max(time, rpc.stream_times.get(0, time))}
    return kept, late


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=20), CUTS)
def test_the_same_ones_are_late_in_any_epochs(drawn: list[tuple[int, int]], cuts: set[int]) -> None:
    """Those whose window was over at the greatest time that was sent before."""
    partials = [(slot * SLIDE, slot * SLIDE + minute * MINUTE) for slot, minute in drawn]
    now = stream_times(time for _, time in partials)
    wanted = [
        start for (start, _), at in zip(partials, now, strict=True) if at is not None and start + SIZE + GRACE > at
    ]
    kept, late = merged(partials, cuts)
    assert [json.loads(key)["window"] for key in kept] == [window_text(start) for start in wanted]
    assert late == len(partials) - len(wanted)


@given(MINUTES, CUTS, CUTS)
def test_none_of_one_partition_is_late(minutes: list[int], cuts: set[int], later_cuts: set[int]) -> None:
    """What a task took in time it sends before anything that closes its window, whatever its epochs and the next's."""
    times = [minute * MINUTE for minute in minutes]
    now = stream_times(times)
    sent: list[Partial] = []
    bounds = [0, *sorted(cut for cut in cuts if cut < len(times)), len(times)]
    for first, end in itertools.pairwise(bounds):
        found: dict[int, int] = {}
        for time, at in zip(times[first:end], now[first:end], strict=True):
            for start in windows_at(time, SIZE, SLIDE):
                if at is not None and start + SIZE + GRACE > at:
                    found[start] = max(time, found.get(start, time))
        made = pa.Table.from_pylist(
            [{"value": b"%d" % start, "timestamp": at} for start, at in found.items()], ROWS_SCHEMA
        )
        ready = in_order(made.append_column(STREAM_TIME, made["timestamp"]))
        sent += [(int(row["value"]), row["timestamp"]) for row in ready.to_pylist()]
    kept, late = merged(sent, later_cuts)
    assert (len(kept), late) == (len(sent), 0)


def test_partials_that_are_merged_at_once_go_by_their_times_and_those_without_first() -> None:
    times = pa.array([5, None, -(2**62), 3, None], pa.int64())
    given = pa.RecordBatch.from_arrays([times, pa.array(range(5))], names=[TIMESTAMP, KEY])
    assert by_time(given).column(KEY).to_pylist() == [1, 4, 2, 3, 0]
