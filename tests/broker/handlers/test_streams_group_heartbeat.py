"""StreamsGroupHeartbeat: who may join, and for whom internal topics are created; tests/broker/streams has the rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.streams.statuses import StatusCode
from tests.broker.handlers.conftest import Rules
from tests.broker.streams.members import (
    Crowd,
    StreamsClient,
    Subtopology,
    Topology,
    counting,
    stateless,
    statuses,
)

Run = Callable[..., None]


CLUSTER = (Operation.CREATE, ResourceType.CLUSTER, None)


async def first(crowd: Crowd) -> StreamsClient:
    """A member that hasn't joined yet."""
    crowd.topics.create("words", 2)
    return await crowd.member(counting())


def test_a_group_that_may_not_be_read(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        response = await (await first(crowd)).join()

        assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert not any(shard.list_groups() for shard in crowd.server.broker.groups.active())

    with_crowd(test, authorizer=Rules((Operation.READ, ResourceType.GROUP, "app")))


@pytest.mark.parametrize("topic", ["words", "app-words-repartition", "app-counts-changelog"])
def test_topics_of_the_topology_that_may_not_be_seen(with_crowd: Run, topic: str) -> None:
    async def test(crowd: Crowd) -> None:
        response = await (await first(crowd)).join()

        assert response.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    with_crowd(test, authorizer=Rules((Operation.DESCRIBE, ResourceType.TOPIC, topic)))


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        (".*", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("wo.*", ErrorCode.NONE),
        ("(", ErrorCode.STREAMS_INVALID_TOPOLOGY),
    ],
)
def test_patterns_do_not_show_topics_that_may_not_be_seen(with_crowd: Run, pattern: str, code: ErrorCode) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        crowd.topics.create("secret", 2)
        topology = Topology(epoch=0, subtopologies=[Subtopology(subtopology_id="0", source_topic_regex=(pattern,))])

        response = await (await crowd.member(topology)).join()

        assert response.error_code == code
        assert "secret" not in (response.error_message or "")

    with_crowd(test, authorizer=Rules((Operation.DESCRIBE, ResourceType.TOPIC, "secret")))


@pytest.mark.parametrize(
    "rules",
    [(CLUSTER,), ((Operation.CREATE, ResourceType.TOPIC, None),)],
    ids=["by topics alone", "by the cluster alone"],
)
def test_internal_topics_are_created_for_who_may(with_crowd: Run, rules: tuple[tuple[object, ...], ...]) -> None:
    async def test(crowd: Crowd) -> None:
        await (await first(crowd)).join()

        assert crowd.topics.get("app-words-repartition") is not None

    with_crowd(test, authorizer=Rules(*rules))  # type: ignore[arg-type]


def test_who_may_not_create_all_internal_topics_creates_none(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        response = await (await first(crowd)).join()

        assert response.error_code == 0
        assert (
            "The client may not create app-counts-changelog." in statuses(response)[StatusCode.MISSING_INTERNAL_TOPICS]
        )
        assert crowd.topics.get("app-words-repartition") is None

    with_crowd(test, authorizer=Rules(CLUSTER, (Operation.CREATE, ResourceType.TOPIC, "app-counts-changelog")))


def test_streams_groups_that_are_not_offered(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await first(crowd)

        assert (await member.join()).error_code == ErrorCode.UNSUPPORTED_VERSION
        described = await member.client.call(StreamsGroupDescribeRequest(group_ids=("app", "other")))
        assert [group.error_code for group in described.groups] == [ErrorCode.UNSUPPORTED_VERSION] * 2

    with_crowd(test, "group.coordinator.rebalance.protocols=classic,consumer")


Run = Callable[..., None]


ALL = {("0", partition) for partition in range(4)}


def test_a_member_gets_all_tasks(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 4)

        member = await crowd.joined(stateless("words"))

        assert member.active == ALL

    with_crowd(test)


def test_a_request_that_makes_no_sense_is_told_why(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        response = await (await crowd.member(stateless("words"))).join(process_id="")

        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert "ProcessId" in (response.error_message or "")

    with_crowd(test)
