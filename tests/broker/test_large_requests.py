"""Requests of very many items: they are worked off in slices, one or two at a time, and refused beyond a limit."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from kohort.broker.dispatch import LARGE, LARGE_AT_ONCE
from kohort.broker.handlers import MAX_ITEMS, ONE_STEP
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.message import Request
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from kohort.protocol.messages.metadata import MetadataRequest
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.conftest import Run
from tests.broker.raw import RawClient, frame

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
GROUPS = DescribeGroupsRequest(groups=[f"group-{number}" for number in range(40_000)])


def commit(count: int, metadata: str = "") -> OffsetCommitRequest:
    partition = OffsetCommitRequest.Topic.Partition
    return OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequest.Topic(
                name="t",
                partitions=[
                    partition(partition_index=index, committed_offset=index + 7, committed_metadata=metadata)
                    for index in range(count)
                ],
            )
        ],
    )


async def beats_until(other: RawClient, answer: asyncio.Future[Any]) -> int:
    """How many heartbeats are answered before a response comes."""
    beats = 0
    while not answer.done():
        assert (await other.call(HEARTBEAT, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        beats += 1
    return beats


@pytest.mark.parametrize(
    "request_",
    [
        GROUPS,
        DeleteGroupsRequest(groups_names=GROUPS.groups),
        commit(90_000),
        OffsetFetchRequest(
            groups=[
                OffsetFetchRequest.Group(
                    group_id="g", topics=[OffsetFetchRequest.Group.Topic(name="t", partition_indexes=range(90_000))]
                )
            ]
        ),
        MetadataRequest(topics=[MetadataRequest.Topic(name=name) for name in GROUPS.groups]),
    ],
    ids=lambda request: request.__message__.name,
)
def test_others_are_answered_meanwhile(request_: Request, with_server: Run) -> None:
    async def test(server: Server) -> None:
        large, other = await RawClient.connect(server.port), await RawClient.connect(server.port)
        await other.call(HEARTBEAT, 4)
        version = min(9, request_.__message__.versions[-1])
        answer = asyncio.ensure_future(large.call(request_, version))
        assert await beats_until(other, answer) > 2  # in one go, it would be one at most
        await answer
        await large.close()
        await other.close()

    with_server(test, "auto.create.topics.enable=false")


def test_a_commit_of_very_many_offsets_is_stored_and_fetched(with_server: Run) -> None:
    count = 2_500

    async def test(server: Server) -> None:
        server.broker.topics.create("t", count - 1)
        client = await RawClient.connect(server.port)
        response = await client.call(commit(count), 9)
        (topic,) = response.topics
        assert len(commit(count).encode(9)) > LARGE
        errors = {each.partition_index: each.error_code for each in topic.partitions}
        assert errors == {**dict.fromkeys(range(count - 1), 0), count - 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        for topics in (None, [OffsetFetchRequest.Group.Topic(name="t", partition_indexes=range(count))]):
            fetch = OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id="g", topics=topics)])
            (group,) = (await client.call(fetch, 9)).groups
            (topic,) = group.topics
            found = {each.partition_index: each.committed_offset for each in topic.partitions}
            expected = {index: index + 7 for index in range(count - 1)}
            assert found == (expected if topics is None else {**expected, count - 1: -1})
        await client.close()

    with_server(test)


def test_too_many_items_are_refused(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        # With a field for the error, the answer has it; otherwise the connection is closed.
        leave = LeaveGroupRequest(group_id="g", members=[LeaveGroupRequest.Member(member_id="m")] * (ONE_STEP + 1))
        assert (await client.call(leave)).error_code == ErrorCode.INVALID_REQUEST
        client.writer.write(frame(DescribeGroupsRequest(groups=["g"] * (MAX_ITEMS + 1)), 5))
        assert await client.closed()
        await client.close()

    with_server(test)


def test_a_large_request_that_does_not_decode_closes_the_connection(with_server: Run) -> None:
    async def test(server: Server) -> None:
        whole = frame(GROUPS, 5)
        for size in (len(whole) // 2, len(whole) - 1):
            client = await RawClient.connect(server.port)
            client.writer.write(struct.pack(">i", size - 4) + whole[4:size])
            assert await client.closed()
            await client.close()

    with_server(test)


def test_large_requests_wait_in_line_and_leave_it_with_their_connection(with_server: Run) -> None:
    async def test(server: Server) -> None:
        clients = [await RawClient.connect(server.port) for _ in range(LARGE_AT_ONCE + 3)]
        for client in clients:
            client.writer.write(frame(GROUPS, 5))
        waiting = server.dispatcher.line
        while len(waiting) < 3:
            await asyncio.sleep(0)
        await clients.pop().close()
        while len(waiting) == 3:
            await asyncio.sleep(0)
        for client in clients:
            assert len((await client.receive(15, 5))[1].groups) == 40_000
            await client.close()
        assert not len(waiting)

    with_server(test)
