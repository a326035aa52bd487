"""Functions that get batches: whatever is killed or paused, a sink that takes each id once has each record once."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from pathlib import Path

import pytest

from kohort.testing.broker import Broker
from tests.spark.runtime.batch_sink import BatchSink
from tests.spark.runtime.faults import Instances, kill_at, pause_at

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

ALL = os.environ.get("KOHORT_ALL_FAULTS") == "1"
STEPS = ("planned", "batches begun", "job", "called", "offsets", "committed", "stored")
KILLED = STEPS if ALL else ("called", "offsets")
PAUSED = STEPS if ALL else ("called",)


@pytest.fixture
def sink(tmp_path: Path) -> BatchSink:
    return BatchSink(tmp_path / "sink.db")


def instances(broker: Broker, home: Path) -> Instances:
    made = Instances(broker.bootstrap_servers, f"app-{uuid.uuid4().hex[:8]}", home)
    made.options["sink"] = str(home / "sink.db")
    return made


def check(sink: BatchSink, made: int) -> None:
    """Each record is there once, and what has the same id has the same rows."""
    assert sorted(map(int, sink.rows)) == list(range(made))
    for batch_id, calls in sink.calls.items():
        assert len(set(calls)) == 1, batch_id


@pytest.mark.parametrize("step", KILLED)
def test_killed(kohort_broker: Broker, tmp_path: Path, sink: BatchSink, step: str) -> None:
    """It dies, and another one takes over, with more records to read by then: the batch is the same again."""
    world = instances(kohort_broker, tmp_path)
    asyncio.run(kill_at(world, step, 3))
    check(sink, world.made)
    if step in ("called", "offsets"):  # between sink and commit
        assert any(len(calls) > 1 for calls in sink.calls.values())


@pytest.mark.parametrize("step", PAUSED)
def test_paused(kohort_broker: Broker, tmp_path: Path, sink: BatchSink, step: str) -> None:
    """Another one has its tasks by the time that it wakes up, and goes on."""
    world = instances(kohort_broker, tmp_path)
    asyncio.run(pause_at(world, step, 3))
    check(sink, world.made)
