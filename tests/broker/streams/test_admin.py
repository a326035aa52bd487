"""Administration of streams groups: listing, deletion, configuration."""

from __future__ import annotations

from typing import Any

from kohort.broker.topics import ConfigResource
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.describe_configs import DescribeConfigsRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kohort.protocol.messages.list_groups import ListGroupsRequest
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from tests.broker.conftest import Run
from tests.broker.raw import RawClient
from tests.broker.streams.members import Crowd, counting, reconcile, stateless


async def describe(client: RawClient, group_id: str = "app") -> Any:
    (group,) = (await client.call(StreamsGroupDescribeRequest(group_ids=(group_id,)))).groups
    return group


def test_a_streams_group_is_no_classic_group(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        client = (await crowd.joined(counting())).client

        newest = (await client.call(DescribeGroupsRequest(groups=("app",)))).groups[0]
        older = (await client.call(DescribeGroupsRequest(groups=("app",)), 5)).groups[0]

        assert newest.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert (older.error_code, older.group_state) == (0, "Dead")

    with_crowd(test)


def test_groups_are_listed_by_type_and_state(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.joined(counting())

        async def listed(**filters: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
            response = await member.client.call(ListGroupsRequest(**filters))
            return [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in response.groups]

        app = [("app", "streams", "NotReady", "streams")]
        assert await listed() == app
        assert await listed(types_filter=("Streams",)) == app
        assert await listed(types_filter=("classic",)) == []
        assert await listed(states_filter=("NotReady",)) == app
        assert await listed(states_filter=("Stable",)) == []

    with_crowd(test)


def test_a_group_is_deleted_when_it_is_empty(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        member = await crowd.joined(counting())

        async def delete() -> int:
            response = await member.client.call(DeleteGroupsRequest(groups_names=("app",)))
            return int(response.results[0].error_code)

        assert await delete() == ErrorCode.NON_EMPTY_GROUP
        await member.leave()
        assert await delete() == ErrorCode.NONE
        assert await delete() == ErrorCode.GROUP_ID_NOT_FOUND
        assert (await describe(member.client)).error_code == ErrorCode.GROUP_ID_NOT_FOUND

    with_crowd(test)


async def configure(client: RawClient, key: str, value: str) -> int:
    """Set a key of the group; the error."""
    config = IncrementalAlterConfigsRequest.Resource.Config(name=key, value=value, config_operation=0)
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=ConfigResource.GROUP, resource_name="app", configs=[config]
    )
    response = await client.call(IncrementalAlterConfigsRequest(resources=[resource]))
    return int(response.responses[0].error_code)


def test_a_groups_configuration_counts_with_the_next_heartbeat(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        member = await crowd.joined(stateless("words"))
        await reconcile(member)
        assert (await member.beat()).heartbeat_interval_ms == 5000

        assert await configure(member.client, "streams.heartbeat.interval.ms", "7000") == ErrorCode.NONE

        assert (await member.beat()).heartbeat_interval_ms == 7000

    with_crowd(test)


def test_a_group_that_is_to_have_standbys_gets_them(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        crowd.topics.create("words", 2)
        members = [await crowd.joined(counting()) for _ in range(2)]
        await reconcile(*members)
        assert not any(member.tasks["standby"] for member in members)

        await configure(members[0].client, "streams.num.standby.replicas", "1")
        await reconcile(*members)

        assert sum(len(ids.partitions) for member in members for ids in member.tasks["standby"]) == 2

    with_crowd(test)


def test_a_configuration_out_of_bounds_is_refused(with_crowd: Run) -> None:
    async def test(crowd: Crowd) -> None:
        client = await crowd.client()

        assert await configure(client, "streams.num.warmup.replicas", "21") == ErrorCode.INVALID_CONFIG
        assert await configure(client, "streams.num.warmup.replicas", "3") == ErrorCode.NONE
        resource = DescribeConfigsRequest.Resource(resource_type=ConfigResource.GROUP, resource_name="app")
        (described,) = (await client.call(DescribeConfigsRequest(resources=[resource]))).results

        values = {config.name: (config.value, config.config_source) for config in described.configs}
        assert values["streams.num.warmup.replicas"] == ("3", 8)
        assert values["streams.assignor.name"] == ("optimal", 5)

    with_crowd(test)
