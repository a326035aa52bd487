"""Requests go where things belong, and again where that helps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kohort.client.admin import Admin, MemberToRemove, OffsetSpec, PartialFailureError, ResetTo
from kohort.client.config import ClientConfig
from kohort.client.errors import ConnectionLostError, RequestTimeoutError, UnsupportedError
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Response
from kohort.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kohort.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kohort.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kohort.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kohort.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kohort.protocol.messages.metadata import MetadataResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from tests.client.support.scripted_broker import Asked, HangUpError, ScriptedBroker
from tests.waiting import run

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def topic(*leaders: int) -> MetadataResponse.Topic:
    kind = MetadataResponse.Topic
    return kind(
        name="t",
        partitions=[
            kind.Partition(partition_index=number, leader_id=leader, leader_epoch=1)
            for number, leader in enumerate(leaders)
        ],
    )


def coordinator(of: ScriptedBroker, error: ErrorCode = ErrorCode.NONE) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        node_id=of.node_id, host=of.host, port=of.port, error_code=error, error_message=None
    )


@asynccontextmanager
async def two_brokers() -> AsyncIterator[tuple[ScriptedBroker, ScriptedBroker, Admin]]:
    async with ScriptedBroker(node_id=1) as one, ScriptedBroker(node_id=2) as two:
        one.others, two.others = [two.broker], [one.broker]
        config = ClientConfig(bootstrap_servers=one.address, retry_backoff_ms=5, reconnect_backoff_ms=5)
        async with Admin(config, default_api_timeout_ms=5000) as admin:
            yield one, two, admin


def offsets(asked: Asked) -> Response:
    request = asked.request
    assert isinstance(request, ListOffsetsRequest)
    kind = ListOffsetsResponse.Topic
    return ListOffsetsResponse(
        topics=[
            kind(
                name=each.name,
                partitions=[
                    kind.Partition(partition_index=at.partition_index, offset=100 + at.partition_index)
                    for at in each.partitions
                ],
            )
            for each in request.topics
        ]
    )


def test_partitions_are_asked_about_at_their_leaders_together() -> None:
    async def test() -> None:
        async with two_brokers() as (one, two, admin):
            for each in (one, two):
                each.topics["t"] = topic(1, 2, 2)
                each.script[ListOffsetsRequest] = offsets
            wanted = {TopicPartition("t", number): OffsetSpec.LATEST for number in range(3)}
            found = await admin.offsets.list(wanted)
            assert [found[at].offset for at in sorted(found)] == [100, 101, 102]
            assert [len(each.requests(ListOffsetsRequest)) for each in (one, two)] == [1, 1]

    run(test())


def test_a_leader_that_has_moved_is_looked_up_again() -> None:
    async def test() -> None:
        async with two_brokers() as (one, two, admin):
            one.topics["t"] = topic(1)
            two.script[ListOffsetsRequest] = offsets

            def moved(asked: Asked) -> Response:
                one.topics["t"] = topic(2)
                kind = ListOffsetsResponse.Topic
                partition = kind.Partition(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                return ListOffsetsResponse(topics=[kind(name="t", partitions=[partition])])

            one.script[ListOffsetsRequest] = moved
            two.topics = one.topics
            assert (await admin.offsets.list({T0: OffsetSpec.LATEST}))[T0].offset == 100

    run(test())


def test_a_lost_connection_and_a_loading_coordinator_are_tried_again() -> None:
    async def test() -> None:
        async with two_brokers() as (one, two, admin):
            answers = iter(["lost", "not available", "loading", "there"])

            def find(asked: Asked) -> Response:
                match next(answers):
                    case "lost":
                        raise HangUpError
                    case "not available":
                        where = coordinator(two, ErrorCode.COORDINATOR_NOT_AVAILABLE)
                    case _:
                        where = coordinator(two)
                where.key = "g"
                return FindCoordinatorResponse(coordinators=[where])

            codes = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE])
            one.script[FindCoordinatorRequest] = two.script[FindCoordinatorRequest] = find
            two.script[DeleteGroupsRequest] = lambda asked: DeleteGroupsResponse(
                results=[DeleteGroupsResponse.Result(group_id="g", error_code=next(codes))]
            )
            await admin.groups.delete("g")
            assert len(two.requests(DeleteGroupsRequest)) == 2

    run(test())


def test_what_no_broker_answers_in_time_fails_with_the_last_reason() -> None:
    async def test() -> None:
        async with two_brokers() as (one, two, admin):
            for each in (one, two):
                each.topics["t"] = topic(-1)
            with pytest.raises(KafkaError, match="LEADER_NOT_AVAILABLE"):
                await admin.offsets.list({T0: OffsetSpec.LATEST}, timeout_ms=50)
            for each in (one, two):
                each.topics["t"] = topic(1)

            def never(asked: Asked) -> Response | None:
                return None

            one.script[ListOffsetsRequest] = never
            with pytest.raises((RequestTimeoutError, ConnectionLostError)):
                await admin.offsets.list({T0: OffsetSpec.LATEST}, timeout_ms=80)

    run(test())


def test_what_a_broker_is_too_old_for_is_said_at_once() -> None:
    async def test() -> None:
        async with ScriptedBroker(versions={ListOffsetsRequest: (1, 6)}) as broker:
            broker.topics["t"] = topic(1)
            async with Admin(broker.address) as admin:
                with pytest.raises(UnsupportedError, match="too old"):
                    await admin.offsets.list({T0: OffsetSpec.MAX_TIMESTAMP})

    run(test())


def test_what_an_answer_leaves_out_has_failed() -> None:
    async def test() -> None:
        async with two_brokers() as (one, _, admin):
            one.script[CreateTopicsRequest] = lambda asked: CreateTopicsResponse(
                topics=[CreateTopicsResponse.Topic(name="a", num_partitions=2, error_message=None)]
            )
            with pytest.raises(PartialFailureError, match="1 of 2 failed: b: UNKNOWN_SERVER_ERROR") as failed:
                await admin.topics.create("a", "b")
            assert failed.value.done["a"].partitions == 2

    run(test())


def at_one(broker: ScriptedBroker, *groups: ListGroupsResponse.Group) -> None:
    """One broker that coordinates all there is."""

    def find(asked: Asked) -> Response:
        request = asked.request
        assert isinstance(request, FindCoordinatorRequest)
        found = []
        for key in request.coordinator_keys:
            found.append(coordinator(broker))
            found[-1].key = key
        return FindCoordinatorResponse(coordinators=found)

    broker.script[FindCoordinatorRequest] = find
    broker.script[ListGroupsRequest] = lambda asked: ListGroupsResponse(groups=[*groups])


def listed(group_id: str, type_: str, state: str = "Stable") -> ListGroupsResponse.Group:
    return ListGroupsResponse.Group(group_id=group_id, protocol_type="consumer", group_state=state, group_type=type_)


def test_each_group_is_described_by_the_api_of_its_type() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker, Admin(broker.address) as admin:
            at_one(broker, listed("old", "Classic"), listed("shared", "Share"), listed("odd", "newest"))
            classic = DescribeGroupsResponse.Group(group_id="old", group_state="Empty", protocol_type="consumer")
            broker.script[DescribeGroupsRequest] = lambda asked: DescribeGroupsResponse(groups=[classic])
            share = ShareGroupDescribeResponse.Group(group_id="shared", error_code=30, error_message="not for you")
            broker.script[ShareGroupDescribeRequest] = lambda asked: ShareGroupDescribeResponse(groups=[share])
            with pytest.raises(PartialFailureError) as failed:
                await admin.groups.describe("old", "shared", "none", "odd")
            assert failed.value.done["old"].state == "Empty"
            assert {name: str(error) for name, error in failed.value.errors.items()} == {
                "shared": "GROUP_AUTHORIZATION_FAILED (30): not for you",
                "none": "GROUP_ID_NOT_FOUND (69): there is no group none",
                "odd": "odd is of a type that Kohort doesn't know",
            }

    run(test())


def test_brokers_that_cannot_filter_groups_are_helped() -> None:
    async def test() -> None:
        async with ScriptedBroker(versions={ListGroupsRequest: (0, 3)}) as broker, Admin(broker.address) as admin:
            at_one(broker, listed("a", ""), ListGroupsResponse.Group(group_id="b", protocol_type="connect"))
            assert [group.group_id for group in await admin.groups.list(types=["classic"])] == ["a", "b"]
            assert [group.group_id for group in await admin.groups.list(types=["share"])] == []
            assert [group.group_id for group in await admin.groups.list(protocol_types=["connect"])] == ["b"]

    run(test())


def test_what_a_broker_that_dies_had_is_found_at_the_others() -> None:
    async def test() -> None:
        async with two_brokers() as (one, two, admin):
            one.script[ListGroupsRequest] = lambda asked: ListGroupsResponse(
                groups=[listed("a", "Classic")] + ([] if one.others else [listed("b", "Classic")])
            )

            def dies(asked: Asked) -> Response:
                one.others = []
                raise HangUpError

            two.script[ListGroupsRequest] = dies
            assert [group.group_id for group in await admin.groups.list()] == ["a", "b"]

    run(test())


def test_old_brokers_are_asked_for_offsets_in_their_way() -> None:
    async def test() -> None:
        versions = {OffsetFetchRequest: (1, 5), FindCoordinatorRequest: (0, 3)}
        async with ScriptedBroker(versions=versions) as broker, Admin(broker.address) as admin:
            at_one(broker, listed("g", ""))
            broker.script[FindCoordinatorRequest] = lambda asked: FindCoordinatorResponse(
                node_id=1, host=broker.host, port=broker.port
            )
            kind = OffsetFetchResponse.Topic
            partitions = [
                kind.Partition(partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="m"),
                kind.Partition(partition_index=1, committed_offset=-1),
            ]
            broker.script[OffsetFetchRequest] = lambda asked: OffsetFetchResponse(
                topics=[kind(name="t", partitions=partitions)]
            )
            assert await admin.group_offsets.committed("g") == {T0: OffsetAndMetadata(5, 2, "m")}

    run(test())


def test_a_share_group_is_reset_by_its_start_offsets() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker, Admin(broker.address) as admin:
            at_one(broker, listed("s", "Share", "Empty"))
            broker.topics["t"] = topic(1)
            broker.script[ListOffsetsRequest] = offsets
            broker.script[ShareGroupDescribeRequest] = lambda asked: ShareGroupDescribeResponse(
                groups=[ShareGroupDescribeResponse.Group(group_id="s", group_state="Empty")]
            )
            kind = DescribeShareGroupOffsetsResponse.Group
            partition = kind.Topic.Partition(partition_index=0, start_offset=40, lag=7)
            described = kind(group_id="s", topics=[kind.Topic(topic_name="t", partitions=[partition])])
            broker.script[DescribeShareGroupOffsetsRequest] = lambda asked: DescribeShareGroupOffsetsResponse(
                groups=[described]
            )
            said = AlterShareGroupOffsetsResponse.TopicResponse
            broker.script[AlterShareGroupOffsetsRequest] = lambda asked: AlterShareGroupOffsetsResponse(
                responses=[said(topic_name="t", partitions=[said.Partition(partition_index=0)])]
            )
            assert (await admin.group_offsets.lag("s"))[T0][:3] == (40, 100, 7)
            planned = await admin.group_offsets.reset("s", ResetTo.latest(), dry_run=False)
            assert planned[T0][:2] == (40, 100)
            (altered,) = broker.requests(AlterShareGroupOffsetsRequest)
            assert isinstance(altered, AlterShareGroupOffsetsRequest)
            assert altered.topics[0].partitions[0].start_offset == 100

    run(test())


def test_members_are_removed_by_static_name_or_by_id() -> None:
    async def test() -> None:
        async with ScriptedBroker() as broker, Admin(broker.address) as admin:
            at_one(broker, listed("g", "Classic"))
            described = DescribeGroupsResponse.Group(group_id="g", group_state="Stable", protocol_type="consumer")
            broker.script[DescribeGroupsRequest] = lambda asked: DescribeGroupsResponse(groups=[described])
            gone = LeaveGroupResponse.Member
            broker.script[LeaveGroupRequest] = lambda asked: LeaveGroupResponse(
                members=[
                    gone(member_id="", group_instance_id="static"),
                    gone(member_id="m", group_instance_id=None, error_code=ErrorCode.UNKNOWN_MEMBER_ID),
                ]
            )
            with pytest.raises(PartialFailureError, match="1 of 2 failed: m: UNKNOWN_MEMBER_ID") as failed:
                await admin.groups.remove_members("g", [MemberToRemove("", "static"), MemberToRemove("m")])
            assert [*failed.value.done] == [MemberToRemove("", "static")]
            (request,) = broker.requests(LeaveGroupRequest)
            assert isinstance(request, LeaveGroupRequest)
            assert [(each.member_id, each.group_instance_id) for each in request.members] == [
                ("", "static"),
                ("m", None),
            ]

    run(test())
