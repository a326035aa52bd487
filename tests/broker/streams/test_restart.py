"""Streams groups after the server was killed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_topics import CreateTopicsRequest
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kohort.testing import BrokerProcess
from tests.broker.raw import RawClient
from tests.broker.streams.members import PATIENCE, StreamsClient, counting, reconcile
from tests.broker.streams.test_offsets import commit, fetch

SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "offsets.topic.num.partitions": 3,
}
NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}


@pytest.fixture
def broker(tmp_path: Path) -> BrokerProcess:
    return BrokerProcess(SETTINGS, data_dir=tmp_path)


async def connected(broker: BrokerProcess, member: StreamsClient) -> None:
    """Give a member a connection, with a coordinator that is ready for it."""
    member.client = await RawClient.connect(broker.port)
    async with asyncio.timeout(PATIENCE):
        while (await described(member)).error_code in NOT_YET:
            await asyncio.sleep(0.01)


async def described(member: StreamsClient) -> Any:
    (group,) = (await member.client.call(StreamsGroupDescribeRequest(group_ids=("app",)))).groups
    return group


def test_members_go_on_where_they_were(broker: BrokerProcess) -> None:
    members = [StreamsClient(None, counting()) for _ in range(2)]  # type: ignore[arg-type]
    seen = []

    async def before() -> None:
        for member in members:
            await connected(broker, member)
        words = CreateTopicsRequest.Topic(name="words", num_partitions=4, replication_factor=1)
        await members[0].client.call(CreateTopicsRequest(topics=[words], timeout_ms=1000))
        for member in members:
            await member.join()
        await reconcile(*members)
        assert await commit(members[0], members[0].epoch) == ErrorCode.NONE
        seen.append(await described(members[0]))
        for member in members:
            await member.client.close()

    async def after() -> None:
        for member in members:
            await connected(broker, member)
        seen.append(await described(members[0]))
        epochs, tasks = [member.epoch for member in members], [member.active for member in members]
        for member in members:
            assert (await member.beat()).error_code == ErrorCode.NONE
        assert ([member.epoch for member in members], [member.active for member in members]) == (epochs, tasks)
        assert await fetch(members[0], members[0].epoch) == (ErrorCode.NONE, 7)
        for member in members:
            await member.client.close()

    with broker:
        asyncio.run(before())
        broker.kill()
        broker.start()
        asyncio.run(after())

    assert seen[0] == seen[1]
