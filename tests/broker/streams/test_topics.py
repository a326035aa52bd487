"""Internal topics that the broker creates, and source topics that groups wait for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.messages.streams_group_heartbeat import TopicInfo
from kohort.streams.statuses import StatusCode
from tests.broker.conftest import Run
from tests.broker.streams.members import (
    Crowd,
    StreamsClient,
    Subtopology,
    Topology,
    counting,
    reconcile,
    stateless,
    statuses,
)


async def state(member: StreamsClient) -> str:
    """The group's state, which asking doesn't change."""
    response = await member.client.call(StreamsGroupDescribeRequest(group_ids=(member.group,)))
    return str(response.groups[0].group_state)


def test_internal_topics_are_created_with_their_settings(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        topics = crowd.topics
        topics.create("words", 3)
        member = await crowd.joined(counting(cleanup_policy="compact", segment_bytes="2000000"))
        await reconcile(member)

        repartition, changelog = topics.get("app-words-repartition"), topics.get("app-counts-changelog")
        assert repartition is not None
        assert changelog is not None
        assert (len(repartition.partitions), len(changelog.partitions)) == (3, 3)
        assert changelog.configs == {"cleanup.policy": "compact", "segment.bytes": "2000000"}

    with_crowd(test)


def test_a_group_is_ready_as_soon_as_its_topics_are_created(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.joined(counting())

        await member.beat()

        assert member.active == {(part, number) for part in "01" for number in range(2)}

    with_crowd(test)


def test_a_group_heals_when_its_source_appears(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.joined(stateless("words"))
        waiting = await member.beat()
        assert (list(statuses(waiting)), await state(member)) == ([StatusCode.MISSING_SOURCE_TOPICS], "NotReady")
        assert "words" in statuses(waiting)[StatusCode.MISSING_SOURCE_TOPICS]

        crowd.topics.create("words", 2)
        await asyncio.sleep(0)

        assert await state(member) != "NotReady"
        assert not statuses(await member.beat())
        assert len(member.active) == 2

    with_crowd(test)


def test_a_group_falls_ill_when_its_source_is_deleted(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.joined(stateless("words"))
        await reconcile(member)

        crowd.topics.delete("words")
        await asyncio.sleep(0)

        assert await state(member) == "NotReady"
        assert list(statuses(await member.beat())) == [StatusCode.MISSING_SOURCE_TOPICS]

    with_crowd(test)


def test_new_partitions_are_new_tasks(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.joined(stateless("words"))
        await reconcile(member)

        crowd.topics.add_partitions("words", 5)
        await reconcile(member)

        assert member.active == {("0", number) for number in range(5)}

    with_crowd(test)


def test_a_pattern_finds_topics_as_they_come(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("orders-eu", 1)
        pattern = Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topic_regex=("orders-.*",))])
        member = await crowd.joined(pattern)
        await reconcile(member)
        assert len(member.active) == 1

        crowd.topics.create("orders-us", 3)
        await reconcile(member)

        assert len(member.active) == 3

    with_crowd(test)


def test_topics_that_have_to_match_and_do_not_are_told(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("left", 2)
        crowd.topics.create("right", 3)
        topology = stateless("left", "right")
        together = Subtopology.CopartitionGroup(source_topics=(0, 1))
        topology.subtopologies[0].copartition_groups = [together]

        member = await crowd.joined(topology)

        assert list(statuses(await member.beat())) == [StatusCode.INCORRECTLY_PARTITIONED_TOPICS]

    with_crowd(test)


def changelog(**fields: Any) -> Topology:
    store = TopicInfo(**{"name": "app-store-changelog", **fields})
    return Topology(
        epoch=0,
        subtopologies=[Subtopology(subtopology_id="0", source_topics=("words",), state_changelog_topics=[store])],
    )


@pytest.mark.parametrize(
    ("topology", "settings", "problem"),
    [
        (
            counting(cleanup_policy="nonsense"),
            (),
            "Could not create app-counts-changelog (cleanup.policy: 'nonsense' can't be: ",
        ),
        (counting(unknown_key="1"), (), "Could not create app-counts-changelog (unknown.key is no key of a topic"),
        (changelog(replication_factor=3), (), "A replication factor of 3 can't be reached"),
        (changelog(), ("default.replication.factor=2",), "A replication factor of 2 can't be reached"),
    ],
    ids=["a value that can't be", "a key that there isn't", "too many replicas", "too many replicas by default"],
)
def test_what_is_in_the_way_of_a_topic_is_told_in_the_status(
    with_crowd: Run, topology: Topology, settings: tuple[str, ...], problem: str
) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.joined(topology)

        for _ in range(2):  # and the next time as well
            response = await member.beat()
            assert response.error_code == 0
            assert problem in statuses(response)[StatusCode.MISSING_INTERNAL_TOPICS]

    with_crowd(test, *settings)
