"""A broker is built of complete parts, in one place, and a coordinator needs no more than that place."""

from __future__ import annotations

import ast
import asyncio
import dataclasses
from pathlib import Path

import pytest

import kohort.broker
from kohort.broker.auto_topic_creation import AutoTopicCreation
from kohort.broker.broker import Broker
from kohort.broker.components import BrokerComponents
from kohort.broker.config import Settings
from kohort.broker.coordinator_runtime import CoordinatorEnvironment, CoordinatorRuntime
from kohort.coordinator.step import Step
from kohort.protocol.message import Data
from tests.broker.conftest import serving

PACKAGE = Path(kohort.broker.__path__[0])


def importers(module: str) -> set[str]:
    """The modules of the broker that import a module, for types as well."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == module:
                found.add(str(file.relative_to(PACKAGE)))
    return found


def test_the_server_alone_knows_the_composition_root() -> None:
    assert importers("kohort.broker.broker") == {"server.py"}


def test_what_is_built_stays(tmp_path: Path) -> None:
    broker = Broker.build(Settings(), data_dir=tmp_path)
    for field in dataclasses.fields(BrokerComponents):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(broker, field.name, None)
    broker.log_manager.close(broker.log_manager.logs(broker.topics))


def test_a_broker_that_was_built_can_be_stopped_without_a_start(tmp_path: Path) -> None:
    asyncio.run(Broker.build(Settings(), data_dir=tmp_path).stop())
    asyncio.run(Broker.build(Settings(), data_dir=tmp_path).stop())  # the directory isn't locked any more


class Nothing:
    """A shard without any state."""

    def __init__(self) -> None:
        self.pending_steps: list[Step] = []

    def replay(self, key: Data, value: Data | None, producer: tuple[int, int] | None) -> None:
        raise AssertionError("its log is empty")

    def loaded(self, now: int) -> None:
        pass


class ThirdCoordinator(CoordinatorRuntime[Nothing]):
    """A coordinator beside the two that there are."""

    def __init__(self, environment: CoordinatorEnvironment) -> None:
        super().__init__(environment, "__third_state", 2, {"cleanup.policy": "compact"})

    def make(self, partition: int) -> Nothing:
        return Nothing()


def test_a_coordinator_needs_the_environment_alone(tmp_path: Path) -> None:
    async def test() -> None:
        async with serving(tmp_path) as server:
            broker = server.broker
            third = ThirdCoordinator(broker.groups.environment)

            AutoTopicCreation(broker.topics, broker.dynamic_config, [third]).create("__third_state")

            assert len(list(third.active())) == 2
            assert broker.topics.get("__third_state")
            await third.stop()

    asyncio.run(test())
