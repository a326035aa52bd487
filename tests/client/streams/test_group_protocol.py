"""Which group protocol is chosen, by what a coordinator says of the group."""

from __future__ import annotations

import pytest

from kohort.client.cluster import Cluster
from kohort.client.streams_group_protocol import choose_group_protocol
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Response
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from tests.client.support.scripted_broker import Asked, ScriptedBroker
from tests.waiting import run

NO_GROUP = DescribeGroupsResponse.Group(
    error_code=ErrorCode.GROUP_ID_NOT_FOUND, group_id="app", group_state="Dead", protocol_type="", protocol_data=""
)
RUNNING = DescribeGroupsResponse.Group(
    error_code=ErrorCode.NONE, group_id="app", group_state="Stable", protocol_type="stream", protocol_data="stream"
)


def failed(code: ErrorCode) -> DescribeGroupsResponse.Group:
    return DescribeGroupsResponse.Group(
        error_code=code, group_id="app", group_state="", protocol_type="", protocol_data=""
    )


async def chosen(*described: DescribeGroupsResponse.Group, streams_error: int = ErrorCode.GROUP_ID_NOT_FOUND) -> str:
    """What is chosen when DescribeGroups says this of the group, one after the other, and then the last again."""
    left = list(described)

    def find(asked: Asked) -> Response:
        node = FindCoordinatorResponse.Coordinator(key="app", node_id=1, host=server.host, port=server.port)
        return FindCoordinatorResponse(coordinators=[node])

    def streams(asked: Asked) -> Response:
        group = StreamsGroupDescribeResponse.Group(group_id="app", error_code=streams_error)
        return StreamsGroupDescribeResponse(groups=[group])

    def classic(asked: Asked) -> Response:
        return DescribeGroupsResponse(groups=[left.pop(0) if len(left) > 1 else left[0]])

    script = {FindCoordinatorRequest: find, StreamsGroupDescribeRequest: streams, DescribeGroupsRequest: classic}
    async with ScriptedBroker(script) as server, Cluster(server.address) as cluster:
        return await choose_group_protocol(cluster, "app", timeout_ms=10_000)


def test_a_classic_group_with_members_is_joined() -> None:
    assert run(chosen(RUNNING)) == "classic"


def test_a_new_group_is_a_streams_group() -> None:
    assert run(chosen(NO_GROUP)) == "streams"


def test_a_coordinator_without_the_feature_has_classic_groups() -> None:
    assert run(chosen(NO_GROUP, streams_error=ErrorCode.UNSUPPORTED_VERSION)) == "classic"


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
def test_a_coordinator_that_doesnt_know_the_group_yet_is_asked_again(code: ErrorCode) -> None:
    assert run(chosen(failed(code), RUNNING)) == "classic"


def test_who_may_not_describe_the_group_hears_it() -> None:
    with pytest.raises(KafkaError) as raised:
        run(chosen(failed(ErrorCode.GROUP_AUTHORIZATION_FAILED)))
    assert raised.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED
