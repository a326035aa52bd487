"""StreamsGroupDescribe: streams groups with their topologies, members and tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.messages.streams_group_heartbeat import Endpoint, KeyValue
from tests.broker.handlers.conftest import Rules
from tests.broker.raw import RawClient
from tests.broker.streams.members import Crowd, counting, reconcile

Run = Callable[..., None]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ((Operation.DESCRIBE, ResourceType.GROUP, "app"), ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ((Operation.DESCRIBE, ResourceType.TOPIC, "words"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ((Operation.DESCRIBE, ResourceType.TOPIC, "app-words-repartition"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ((Operation.DESCRIBE, ResourceType.TOPIC, "app-counts-changelog"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_a_group_that_may_not_be_described(
    with_crowd: Run, rule: tuple[Operation, ResourceType, str], code: ErrorCode
) -> None:
    rules = Rules()

    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        await reconcile(member := await crowd.joined(counting()))
        rules.rules = (rule,)

        (group,) = (await member.client.call(StreamsGroupDescribeRequest(group_ids=("app",)))).groups

        assert group.error_code == code
        assert (group.topology, group.members, group.group_state) == (None, [], "")

    with_crowd(test, authorizer=rules)


def test_what_may_be_done_with_a_group_is_told(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.joined(counting())
        request = StreamsGroupDescribeRequest(group_ids=("app",), include_authorized_operations=True)

        (group,) = (await member.client.call(request)).groups

        allowed = {Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
        assert group.authorized_operations == sum(1 << operation for operation in allowed)

    with_crowd(test, authorizer=Rules((Operation.DELETE, ResourceType.GROUP, "app")))


Run = Callable[..., None]


async def describe(client: RawClient, group_id: str = "app") -> Any:
    (group,) = (await client.call(StreamsGroupDescribeRequest(group_ids=(group_id,)))).groups
    return group


def test_a_group_is_described(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.member(counting())
        await member.join(
            rack_id="a",
            user_endpoint=Endpoint(host="here", port=8080),
            client_tags=[KeyValue(key="zone", value="z1")],
        )
        await reconcile(member)

        group = await describe(member.client)

        assert (group.error_code, group.group_id, group.group_state) == (0, "app", "Stable")
        assert group.group_epoch == group.assignment_epoch == member.epoch
        first, second = group.topology.subtopologies
        assert (first.source_topics, first.repartition_sink_topics) == (("words",), ("app-words-repartition",))
        assert [(topic.name, topic.partitions) for topic in second.state_changelog_topics] == [
            ("app-counts-changelog", 2)
        ]
        (told,) = group.members
        assert (told.member_id, told.process_id, told.rack_id) == (member.member_id, member.process, "a")
        assert (told.user_endpoint.host, told.user_endpoint.port) == ("here", 8080)
        assert [(tag.key, tag.value) for tag in told.client_tags] == [("zone", "z1")]
        assert (told.client_id, told.client_host) == ("raw", "/127.0.0.1")
        assert told.assignment == told.target_assignment
        assert [(ids.subtopology_id, ids.partitions) for ids in told.assignment.active_tasks] == [
            ("0", (0, 1)),
            ("1", (0, 1)),
        ]

    with_crowd(test)


def test_groups_that_cannot_be_described(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        client = (await crowd.member(counting())).client

        absent = await describe(client, "absent")

        assert absent.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "absent" in absent.error_message
        assert (await describe(client, "")).error_code == ErrorCode.INVALID_GROUP_ID

    with_crowd(test)
