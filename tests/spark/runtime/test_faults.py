"""Killed or paused between any two steps: what comes out is as if each record were processed once."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from pathlib import Path

import pytest

from kohort.testing.broker import Broker
from kohort.testing.process import BrokerProcess
from tests.spark.runtime.faults import Instances, kill_at, pause_at

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

STEPS = (
    "activating", "known", "restored",
    "planned", "job", "begun", "sent {app}-counts-repartition", "sent {app}-copies", "sent {app}-counts",
    "sent {app}-counts-changelog", "offsets", "committed", "stored",
)  # fmt: skip
"""Those of taking a task on, and those of an epoch, in their order."""

# The usual run has those where most can go wrong: between the members' offsets, the commit and the stores.
ALL = os.environ.get("KOHORT_ALL_FAULTS") == "1"
KILLED = STEPS if ALL else ("known", "sent {app}-counts-changelog", "committed")
PAUSED = STEPS if ALL else ("restored", "offsets")
BROKER = ("killed", "restarted") if ALL else ("killed",)


def _times(step: str) -> int:
    return 2 if step in ("activating", "known", "restored") else 3


@pytest.mark.parametrize("step", KILLED)
def test_killed(kohort_broker: Broker, tmp_path: Path, step: str) -> None:
    """It dies, and another one takes over; with its state for every other step."""
    instances = Instances(kohort_broker.bootstrap_servers, f"app-{uuid.uuid4().hex[:8]}", tmp_path)
    asyncio.run(kill_at(instances, step, _times(step), state="first" if STEPS.index(step) % 2 else None))


@pytest.mark.parametrize("step", PAUSED)
def test_paused(kohort_broker: Broker, tmp_path: Path, step: str) -> None:
    instances = Instances(kohort_broker.bootstrap_servers, f"app-{uuid.uuid4().hex[:8]}", tmp_path)
    asyncio.run(pause_at(instances, step, _times(step)))


@pytest.mark.parametrize("how", BROKER)
def test_the_broker_goes_and_comes_back(kohort_broker_process: BrokerProcess, tmp_path: Path, how: str) -> None:
    """Twice, in the middle of whatever two instances are at; they wait, and go on by themselves."""

    async def scenario() -> None:
        broker = kohort_broker_process
        async with Instances(broker.bootstrap_servers, f"app-{uuid.uuid4().hex[:8]}", tmp_path) as instances:
            instances.options["session_timeout_ms"] = 5_000
            instances.start("first")
            instances.start("second")
            async with instances.feeding():
                await instances.begun("first")
                await instances.begun("second")
                for _ in range(2):
                    if how == "killed":
                        broker.kill()
                        await asyncio.sleep(0.5)
                        await asyncio.to_thread(broker.start)
                    else:
                        await asyncio.to_thread(broker.restart)
                    await asyncio.sleep(1.5)
            await instances.counted()
            await instances.ended("first")
            await instances.ended("second")
            instances.check()

    asyncio.run(scenario())
