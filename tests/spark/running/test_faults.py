"""Killed or paused between any two steps: what comes out is as if each record were processed once."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from pathlib import Path

import pytest

from kohort.testing.broker import Broker
from tests.spark.running.faults import Instances

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

STEPS = (
    "taking", "known", "restored",
    "planned", "job", "begun", "sent {app}-counts-repartition", "sent {app}-copies", "sent {app}-counts",
    "sent {app}-counts-changelog", "offsets", "committed", "stored",
)  # fmt: skip
"""Those of taking a task on, and those of an epoch, in their order."""


def _times(step: str) -> int:
    return 2 if step in ("taking", "known", "restored") else 3


@pytest.mark.parametrize("step", STEPS)
def test_killed(kohort_broker: Broker, tmp_path: Path, step: str) -> None:
    """It dies, and another one takes over; with its state for every other step."""

    async def scenario() -> None:
        async with Instances(kohort_broker.bootstrap_servers, f"app-{uuid.uuid4().hex[:8]}", tmp_path) as instances:
            async with instances.feeding():
                instances.start("first", step=step, nth=_times(step), action=signal.SIGKILL)
                await instances.died("first")
                instances.start("second", state="first" if STEPS.index(step) % 2 else None)
            await instances.counted()
            await instances.ended("second")
            instances.check()

    asyncio.run(scenario())


@pytest.mark.parametrize("step", STEPS)
def test_paused(kohort_broker: Broker, tmp_path: Path, step: str) -> None:
    """It is paused beyond its session; another one takes its tasks and goes on; then it wakes up, and must do no harm."""

    async def scenario() -> None:
        async with Instances(kohort_broker.bootstrap_servers, f"app-{uuid.uuid4().hex[:8]}", tmp_path) as instances:
            async with instances.feeding():
                instances.start("first", step=step, nth=_times(step), action=signal.SIGSTOP)
                await instances.paused("first")
                instances.start("second")
            await instances.counted()
            async with instances.feeding():
                instances.signal("first", signal.SIGCONT)
                await asyncio.sleep(1)
            await instances.counted()
            await instances.ended("second")
            await instances.ended("first")
            instances.check()

    asyncio.run(scenario())
