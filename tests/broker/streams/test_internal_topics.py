"""Creation of internal topics, over several turns of the loop."""

from __future__ import annotations

import asyncio

from kohort.broker.server import Server
from kohort.broker.streams.internal_topics import PARTITIONS_PER_TURN, InternalTopics
from kohort.broker.topics import MAX_PARTITIONS_AT_ONCE
from kohort.streams.topology import InternalTopic
from tests.broker.conftest import Run


def anyone(topic: str) -> bool:
    del topic
    return True


def internal_topics(server: Server) -> InternalTopics:
    return InternalTopics(server.broker.topics, server.broker.dynamic_config)


def test_others_get_their_turn(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topics, made = server.broker.topics, internal_topics(server)
        missing = [InternalTopic(f"topic-{number}", PARTITIONS_PER_TURN // 2) for number in range(5)]

        assert made.create(missing, anyone) == ""
        counts = [len(topics)]
        for _ in range(3):
            await asyncio.sleep(0)
            counts.append(len(topics))

        assert counts == [2, 4, 5, 5]

    with_server(test)


def test_what_is_asked_for_again_is_created_once(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topics, made = server.broker.topics, internal_topics(server)
        missing = [InternalTopic(f"topic-{number}", PARTITIONS_PER_TURN) for number in range(2)]

        assert made.create(missing, anyone) == ""
        assert made.create(missing, anyone) == ""
        await asyncio.sleep(0)
        assert made.create(missing, anyone) == ""

        assert len(topics) == 2

    with_server(test)


def test_so_many_partitions_wait(with_server: Run) -> None:
    async def test(server: Server) -> None:
        topics, made = server.broker.topics, internal_topics(server)
        missing = [
            InternalTopic("first", PARTITIONS_PER_TURN),
            InternalTopic("second", MAX_PARTITIONS_AT_ONCE - PARTITIONS_PER_TURN),
        ]

        problem = made.create([*missing, InternalTopic("third", 1)], anyone)

        assert problem == "Could not create third (10000 other partitions have to be created before)."
        made.stop()
        await asyncio.sleep(0)
        assert len(topics) == 1

    with_server(test)


def test_a_long_list_of_problems_is_cut(with_server: Run) -> None:
    async def test(server: Server) -> None:
        made = internal_topics(server)
        missing = [InternalTopic(f"topic-{number}", 1, 2) for number in range(30)]

        assert made.create(missing, anyone).endswith(" and 20 more.")

    with_server(test)
