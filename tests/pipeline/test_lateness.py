"""What is late is a property of the records: the same however they fall into epochs."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kohort.spark import StreamsApp, count, window
from kohort.spark.epoch import EpochInput, Mergers, OffsetRange
from kohort.spark.runtime.epoch_writes import MergedRows, epoch_writes
from kohort.spark.runtime.planning import subtopology_plan_of
from kohort.spark.runtime.subtopology_plan import StoreOutput
from kohort.spark.runtime.window_closing import later, window_text
from kohort.testing.broker import Broker

from ..marks import long
from ..spark.jobs.windowed import GRACE, MINUTE, SIZE, SLIDE, START, counted, walk
from .applications import create_topics, producer, read, run_in_steps
from .jobs_harness import PARTITIONS, JobsHarness, moved_to

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kohort.spark.program.compiled import CompiledSubtopology

READING = "sensor STRING, room STRING, at TIMESTAMP"


@pytest.mark.parametrize("by", ["sensor", "room"])
@pytest.mark.parametrize("together", [True, False])
def test_a_record_is_late_by_those_before_it(
    spark: SparkSession, kohort_fresh_broker: Broker, tmp_path: Path, by: str, together: bool
) -> None:
    """Be they in its own epoch or in one before; by the stream's own key, and through a repartition topic."""
    servers = kohort_fresh_broker.bootstrap_servers
    create_topics(servers, "readings", "counted")

    def send(times: Sequence[str | None]) -> int:
        sending = producer(servers)
        for time in times:
            row = {"sensor": "a", "room": "r", "at": time and f"2013-01-01T{time}:00Z"}
            sending.produce("readings", json.dumps(row), key="a")
        sending.flush()
        return len(times)

    app = StreamsApp("lateness", bootstrap_servers=servers, state_dir=tmp_path)
    readings = app.stream("readings", schema=READING, key="sensor", event_time="at")
    grouped = readings.group_by(by, window("at", "10 minutes", grace="5 minutes"))
    grouped.aggregate("counts", n=count()).to("counted")
    times = ("10:01", "10:40", "10:02", None)
    steps = [partial(send, times)] if together else [partial(send, [time]) for time in times]
    heard = run_in_steps(app, spark, steps, moved=by == "room")
    values = [json.loads(each.value()) for each in read(servers, "counted")]
    assert {value["window"][11:16]: value["n"] for value in values} == {"10:00": 1, "10:40": 1}
    assert heard.total("late") == 1
    assert [each.reasons for each in heard.epochs if each.reasons] == [{"no window": 1}]


# Any epochs ----------------------------------------------------------------------------------------------------------

RETENTION = 20 * MINUTE


class Epochs:
    """Runs a subtopology's epochs as its runner does, for a store in a dictionary.

    Args:
        merger: the subtopology that merges at once what its one branch makes.
    """

    def __init__(
        self, harness: JobsHarness, subtopology: CompiledSubtopology, merger: CompiledSubtopology | None = None
    ) -> None:
        self._harness, self._plan, self._jobs = harness, subtopology_plan_of(subtopology), harness.jobs(subtopology)
        self._merger = None if merger is None else subtopology_plan_of(merger).branches[0]
        self._merger_times: dict[int, int | None] = dict.fromkeys(range(PARTITIONS))
        self._topic = subtopology.input.topics[0] if subtopology.input else ""
        self._times: dict[int, int | None] = {}
        self._positions = [0] * PARTITIONS
        self._number = 0
        self.late = 0
        self.published: list[dict[str, Any]] = []

    def run(self, upto: Sequence[int]) -> pa.Table:
        """An epoch of all that is left before these offsets; what it sends on."""
        ranges = [OffsetRange(self._topic, at, self._positions[at], end) for at, end in enumerate(upto)]
        self._positions = list(upto)
        self._number += 1
        before_times = {partition: time for partition, time in self._times.items() if time is not None}
        mergers, merged = {}, {}
        if isinstance(self._merger, StoreOutput):
            times = dict(self._merger_times)
            mergers, merged = {0: Mergers(PARTITIONS, times)}, {0: MergedRows(self._merger, times)}
        output = self._jobs.run(EpochInput(self._number, tuple(ranges), before_times, mergers=mergers))
        before = {each.partition: self._times.get(each.partition) for each in ranges}
        out = epoch_writes(self._plan, output, None, before, self._scan, merged)
        for partition, time in output.statistics.merged_times.get(0, {}).items():
            self._merger_times[partition] = later(self._merger_times[partition], time)
        for (store, _, partition), table in out.changelogs.items():
            kept = self._harness.stores[(store, partition)]
            for row in table.to_pylist():
                kept.pop(row["key"], None)
                if row["value"] is not None:
                    kept[row["key"]] = row["value"]
        self._times = {at: later(time, output.statistics.max_times.get(at)) for at, time in before.items()}
        self.late += output.statistics.late
        if merged or isinstance(self._plan.branches[0], StoreOutput):
            self.published += [json.loads(value) for _, table in out.sent for value in table["value"].to_pylist()]
        return output.rows[0]

    def _scan(self, store: str, partition: int, start: bytes, end: bytes) -> pa.Table:
        found = sorted((k, v) for k, v in self._harness.stores[(store, partition)].items() if start <= k < end)
        columns = [pa.array([pair[at] for pair in found], pa.binary()) for at in (0, 1)]
        return pa.table(columns, names=["key", "value"])


def _counts(rows: pa.Table, prior: pa.Table) -> pa.Table:
    before = {(row["window"], row["room"]): row["n"] for row in prior.to_pylist()}
    found = Counter((row["window"], row["room"]) for row in rows.to_pylist())
    return pa.Table.from_pylist(
        [{"window": at, "room": room, "n": n + before.get((at, room), 0)} for (at, room), n in found.items()]
    )


@pytest.mark.parametrize(
    "way", ["in place", "as partials", "as rows", *long("as partials at once", "as rows to a function")]
)
@pytest.mark.parametrize(
    ("slide", "emit"),
    [
        (SLIDE, "close"),
        pytest.param(SIZE, "update", marks=pytest.mark.long),
        pytest.param(SLIDE, "retention", marks=pytest.mark.long),
    ],
)
def test_results_are_the_same_in_any_epochs(harness: JobsHarness, way: str, slide: int, emit: str) -> None:
    """As if each record had been taken by itself, by the task that first has it in a window."""
    draw = random.Random(f"{way} {slide} {emit}")
    # Of one partition, where it matters how far another one is behind.
    partitions = PARTITIONS if way == "in place" or (way[:11], emit) == ("as partials", "update") else 1
    records = [
        walk(f"{emit} {at}", [f"{name}{at}" if way == "in place" else name for name in "abc"])
        for at in range(partitions)
    ]
    tasks = records
    if way.startswith("as rows"):
        tasks = [[each for each in records[0] if moved_to(each[0].encode()) == at] for at in range(PARTITIONS)]
    folded = [counted(mine, SIZE, slide, GRACE) for mine in tasks]
    counts = sum((found for found, _ in folded), start=Counter())
    late = sum(number for _, number in folded)
    assert late > 0
    source = harness.topic()
    for partition, mine in enumerate(records):
        rows = [{"sensor": f"s{partition}", "room": room, "at": window_text(time)} for room, time in mine]
        keys = [row["room"] if way == "in place" else row["sensor"] for row in rows]
        harness.send(source, [(partition, key.encode(), row) for key, row in zip(keys, rows, strict=True)])
    outcomes = []
    for epochs in (1, 2, 7):
        ends = [[*sorted(draw.sample(range(1, len(mine)), epochs - 1)), len(mine)] for mine in records]
        steps = [[mine[number] for mine in ends] + [0] * (PARTITIONS - partitions) for number in range(epochs)]
        outcomes.append(_outcome(harness, source, way, slide, emit, steps, draw))
    shown, published, dropped = outcomes[0]
    assert outcomes == [(shown, published, late)] * 3, late - dropped
    assert all(counts[pair] == n for pair, n in shown.items())
    if emit == "retention":
        assert 0 < len(shown) < len(counts)
    else:
        assert shown == counts
    if emit == "close":
        told = dict(published)
        assert len(told) == len(published) > 10
        assert all(counts[pair] == n for pair, n in told.items())


@pytest.mark.parametrize("way", ["as partials", "as partials at once", "as rows"])
def test_partitions_of_a_backlog_go_side_by_side(harness: JobsHarness, way: str) -> None:
    """Of rows that are in time where they are read, none is late where they meet, though one partition comes first."""
    source = harness.topic()
    times = [START + number * SIZE for number in range(12)]
    for partition in range(PARTITIONS):
        rows = [{"sensor": f"s{partition}", "room": "r", "at": window_text(time)} for time in times]
        harness.send(source, [(partition, row["sensor"].encode(), row) for row in rows])
    steps = [[len(times)] * PARTITIONS]
    shown, published, late = _outcome(harness, source, way, SIZE, "close", steps, random.Random(way))
    assert late == 0
    assert shown == {("r", time): PARTITIONS for time in times}
    assert [n for _, n in published] == [PARTITIONS] * 10  # the last two are open


@pytest.mark.parametrize("together", [True, False])
def test_rows_without_a_key_do_not_close_windows_either(harness: JobsHarness, together: bool) -> None:
    """Where they lie by chance, as another branch goes by the key: not where partials meet, either."""
    source = harness.topic()
    harness.stores.clear()
    app = StreamsApp(f"app-{source}", bootstrap_servers=harness.servers.bootstrap_servers)
    readings = app.stream(source, schema=READING, key="sensor", event_time="at")
    windows = window("at", "10 minutes", grace="5 minutes")
    readings.group_by("room", windows).aggregate("counts", n=count(), emit="close").to("out")
    readings.group_by("sensor").aggregate("sensors", n=count())
    keys_and_times = ((None, "09:00"), ("s", "08:01"), (None, "12:00"), ("s", "08:02"), ("s", "08:40"))
    rows = [(key, {"sensor": "s", "room": "r", "at": f"2013-01-01T{at}:00Z"}) for key, at in keys_and_times]
    harness.send(source, [(0, key and key.encode(), row) for key, row in rows])
    first, second = (Epochs(harness, subtopology) for subtopology in app.compile(harness.spark).subtopologies)
    between = f"{app.settings.application_id}-counts-repartition"
    create_topics(harness.servers.bootstrap_servers, between)
    for end in [len(rows)] if together else range(1, len(rows) + 1):
        harness.forward(between, first.run([end] + [0] * (PARTITIONS - 1)))
        second.run(harness.ends[between])
    assert (first.late, second.late) == (0, 0)
    assert [(row["window"][11:16], row["n"]) for row in second.published] == [("08:00", 2)]


_Shown = dict[tuple[str, int], int]


def _outcome(
    harness: JobsHarness, source: str, way: str, slide: int, emit: str, steps: list[list[int]], draw: random.Random
) -> tuple[_Shown, list[tuple[tuple[str, int], int]], int]:
    """What an application's store has at the end, what it wrote, and how many rows were late."""
    harness.stores.clear()
    app = StreamsApp(f"app-{harness.topic()}", bootstrap_servers=harness.servers.bootstrap_servers)
    stream = app.stream(source, schema=READING, key="room" if way == "in place" else "sensor", event_time="at")
    if way.startswith("as rows"):
        stream = stream.transform(lambda df: df.select("room", "at")).repartition("room")
    minutes = {"size": SIZE, "slide": slide, "grace": GRACE, "retention": RETENTION}
    given = {name: f"{length // MINUTE} minutes" for name, length in minutes.items()}
    if emit != "retention":
        del given["retention"]
    grouped = stream.group_by("room", window("at", **given))
    told = "close" if emit == "close" else "update"
    if way == "as rows to a function":
        grouped.aggregate_arrow("counts", _counts, state="n BIGINT", emit=told).to("out")
    else:
        grouped.aggregate("counts", n=count(), emit=told).to("out")
    subtopologies = app.compile(harness.spark).subtopologies
    if way == "as partials at once":
        runs = [Epochs(harness, *subtopologies)]
    else:
        runs = [Epochs(harness, subtopology) for subtopology in subtopologies]
    if len(runs) > 1:
        assert subtopologies[1].input is not None
        between = subtopologies[1].input.topic
        create_topics(harness.servers.bootstrap_servers, between)
    for upto in steps:
        made = runs[0].run(upto)
        if len(runs) > 1:
            harness.forward(between, made)
            if upto is steps[-1] or draw.random() < 0.5:
                ends = harness.ends[between]
                runs[1].run([draw.randint(runs[1]._positions[at], end) for at, end in enumerate(ends)])
                runs[1].run(ends)
    published = [((row["room"], _millis(row["window"])), row["n"]) for row in runs[-1].published]
    shown = {
        (key["room"], _millis(key["window"])): json.loads(value)["n"]
        for stored in harness.stores.values()
        for key, value in ((json.loads(key), value) for key, value in stored.items())
    }
    return shown, sorted(published) if emit == "close" else [], sum(each.late for each in runs)


def _millis(text: str) -> int:
    return int(pa.array([text[:-1]]).cast(pa.timestamp("ms")).cast(pa.int64())[0].as_py())
