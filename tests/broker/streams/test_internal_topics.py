"""Creation of internal topics, over several turns of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from kohort.broker.broker import Broker
from kohort.broker.config import Settings
from kohort.broker.context import Context, Session
from kohort.broker.streams.internal_topics import PARTITIONS_PER_TURN, InternalTopics
from kohort.broker.topics import MAX_PARTITIONS_AT_ONCE
from kohort.streams.topology import InternalTopic


def with_internal_topics(
    directory: Path, test: Callable[[Broker, InternalTopics, Context], Coroutine[Any, Any, None]]
) -> None:
    broker = Broker(Settings(), data_dir=directory)
    made = InternalTopics(broker)
    try:
        asyncio.run(test(broker, made, Context(broker, 0, 0, "", Session())))
    finally:
        broker.log_manager.close(broker.log_manager.logs(broker.topics))


def test_others_get_their_turn(tmp_path: Path) -> None:
    async def test(broker: Broker, made: InternalTopics, context: Context) -> None:
        missing = [InternalTopic(f"topic-{number}", PARTITIONS_PER_TURN // 2) for number in range(5)]

        assert made.create(missing, context) == ""
        counts = [len(broker.topics)]
        for _ in range(3):
            await asyncio.sleep(0)
            counts.append(len(broker.topics))

        assert counts == [2, 4, 5, 5]

    with_internal_topics(tmp_path, test)


def test_what_is_asked_for_again_is_created_once(tmp_path: Path) -> None:
    async def test(broker: Broker, made: InternalTopics, context: Context) -> None:
        missing = [InternalTopic(f"topic-{number}", PARTITIONS_PER_TURN) for number in range(2)]

        assert made.create(missing, context) == ""
        assert made.create(missing, context) == ""
        await asyncio.sleep(0)
        assert made.create(missing, context) == ""

        assert len(broker.topics) == 2

    with_internal_topics(tmp_path, test)


def test_so_many_partitions_wait(tmp_path: Path) -> None:
    async def test(broker: Broker, made: InternalTopics, context: Context) -> None:
        missing = [
            InternalTopic("first", PARTITIONS_PER_TURN),
            InternalTopic("second", MAX_PARTITIONS_AT_ONCE - PARTITIONS_PER_TURN),
        ]

        problem = made.create([*missing, InternalTopic("third", 1)], context)

        assert problem == "Could not create third (10000 other partitions have to be created before)."
        made.stop()
        await asyncio.sleep(0)
        assert len(broker.topics) == 1

    with_internal_topics(tmp_path, test)


def test_a_long_list_of_problems_is_cut(tmp_path: Path) -> None:
    async def test(broker: Broker, made: InternalTopics, context: Context) -> None:
        missing = [InternalTopic(f"topic-{number}", 1, 2) for number in range(30)]

        assert made.create(missing, context).endswith(" and 20 more.")

    with_internal_topics(tmp_path, test)
