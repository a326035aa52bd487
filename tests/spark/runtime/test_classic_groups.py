"""Instances in classic groups, killed, paused and moved to the other protocol: each record is processed once."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from kohort.client.admin import Admin
from kohort.testing.broker import Broker
from kohort.testing.process import BrokerProcess
from tests.spark.runtime.faults import Instances, kill_at, pause_at
from tests.spark.runtime.test_faults import ALL, STEPS

KILLED = STEPS if ALL else ("restored", "offsets")
PAUSED = STEPS if ALL else ("sent {app}-counts-changelog",)


def classic(servers: str, home: Path) -> Instances:
    instances = Instances(servers, f"app-{uuid.uuid4().hex[:8]}", home)
    instances.options["group_protocol"] = "classic"
    return instances


@pytest.mark.parametrize("step", KILLED)
def test_killed(kohort_broker: Broker, tmp_path: Path, step: str) -> None:
    instances = classic(kohort_broker.bootstrap_servers, tmp_path)
    asyncio.run(kill_at(instances, step, 2, state="first" if STEPS.index(step) % 2 else None))


@pytest.mark.parametrize("step", PAUSED)
def test_paused(kohort_broker: Broker, tmp_path: Path, step: str) -> None:
    asyncio.run(pause_at(classic(kohort_broker.bootstrap_servers, tmp_path), step, 2))


def test_two_share_the_work_while_the_broker_goes_and_comes_back(
    kohort_broker_process: BrokerProcess, tmp_path: Path
) -> None:
    async def scenario() -> None:
        broker = kohort_broker_process
        async with classic(broker.bootstrap_servers, tmp_path) as instances:
            instances.options["session_timeout_ms"] = 5_000
            instances.options["max_warmup_replicas"] = 0
            instances.start("first")
            instances.start("second")
            async with instances.feeding():
                await instances.begun("first")
                await instances.begun("second")
                broker.kill()
                await asyncio.sleep(0.5)
                await asyncio.to_thread(broker.start)
                await asyncio.sleep(1.5)
            await instances.counted()
            await instances.ended("first")
            await instances.ended("second")
            instances.check()

    asyncio.run(scenario())


@pytest.mark.parametrize(("before", "after"), [("streams", "classic"), ("classic", "streams")])
def test_an_application_goes_over_to_the_other_protocol(
    kohort_broker: Broker, tmp_path: Path, before: str, after: str
) -> None:
    """With one stop: the group is empty then. What is on the disk is used again."""

    async def scenario() -> None:
        async with classic(kohort_broker.bootstrap_servers, tmp_path) as instances:
            for name, protocol in (("first", before), ("second", after)):
                instances.options["group_protocol"] = protocol
                instances.start(name, state="first")
                async with instances.feeding():
                    await instances.begun(name)
                await instances.counted()
                async with Admin(kohort_broker.bootstrap_servers) as admin:
                    group = (await admin.groups.describe(instances.app))[instances.app]
                assert group.type == protocol
                await instances.ended(name)
            instances.check()

    asyncio.run(scenario())
