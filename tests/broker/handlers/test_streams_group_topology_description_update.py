"""StreamsGroupTopologyDescriptionUpdate: members are asked to describe their topology, until one does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.coordinator.streams.topology_description import MAX_NODES
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.protocol.messages.streams_group_topology_description_update import (
    Node,
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
)
from tests.broker.handlers.conftest import Rules
from tests.broker.streams.members import Crowd, StreamsClient, stateless

Run = Callable[..., None]

SOURCE = Node(name="KSTREAM-SOURCE-0", node_type=1, source_topics=("words",), successors=("KSTREAM-SINK-1",))
SINK = Node(name="KSTREAM-SINK-1", node_type=3, sink_topic="out")
DESCRIPTION = TopologyDescription(
    subtopologies=[TopologyDescription.Subtopology(subtopology_id="0", nodes=[SOURCE, SINK])]
)


async def update(member: StreamsClient, **fields: Any) -> Any:
    request = {
        "group_id": "app", "member_id": member.member_id, "topology_epoch": 0, "topology_description": DESCRIPTION,
        **fields,
    }  # fmt: skip
    return await member.client.call(StreamsGroupTopologyDescriptionUpdateRequest(**request))


async def described(member: StreamsClient, *, wanted: bool = True) -> tuple[int, TopologyDescription | None]:
    request = StreamsGroupDescribeRequest(group_ids=("app",), include_topology_description=wanted)
    (group,) = (await member.client.call(request)).groups
    assert group.error_code == 0
    assert group.assignor_name
    return group.topology_description_status, group.topology_description


def test_a_description_is_asked_for_until_it_is_there(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.joined(stateless("words"))
        assert (await member.beat()).topology_description_required
        assert await described(member) == (1, None)

        assert (await update(member)).error_code == ErrorCode.NONE

        assert not (await member.beat()).topology_description_required
        assert await described(member) == (3, DESCRIPTION)
        assert await described(member, wanted=False) == (0, None)

    with_crowd(test)


def test_a_description_of_another_topology_is_asked_for_anew(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.joined(stateless("words"))
        await update(member)
        member.topology = stateless("words")
        member.topology.epoch = 1
        assert (await member.join()).topology_description_required
        assert await described(member) == (1, None)

    with_crowd(test)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": " "}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"topology_epoch": 1}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "nowhere"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_description_that_is_refused_is_not_kept(with_crowd: Run, fields: dict[str, Any], code: ErrorCode) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.joined(stateless("words"))
        response = await update(member, **fields)
        assert response.error_code == code
        assert response.error_message
        assert await described(member) == (1, None)

    with_crowd(test)


def test_a_description_that_is_too_large_is_not_asked_for_again(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.joined(stateless("words"))
        nodes = [Node(name="n", node_type=2)] * (MAX_NODES + 1)
        large = TopologyDescription(subtopologies=[TopologyDescription.Subtopology(subtopology_id="0", nodes=nodes)])
        response = await update(member, topology_description=large)
        assert response.error_code == ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
        assert not (await member.beat()).topology_description_required
        assert await described(member) == (2, None)

    with_crowd(test)


def test_who_may_not_read_the_group_does_not_describe_it(with_crowd: Run) -> None:
    rules = Rules()

    async def test(crowd: Crowd) -> None:
        member = await crowd.joined(stateless("words"))
        rules.rules = ((Operation.READ, ResourceType.GROUP, "app"),)
        assert (await update(member)).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED

    with_crowd(test, authorizer=rules)


def test_where_there_are_no_streams_groups(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.member(stateless("words"))
        assert (await update(member)).error_code == ErrorCode.UNSUPPORTED_VERSION

    with_crowd(test, "group.coordinator.rebalance.protocols=classic,consumer")
