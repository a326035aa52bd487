"""ListOffsets: offsets by time."""

from __future__ import annotations

import pytest

from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_offsets import ListOffsetsRequest
from tests.broker.handlers.served import Run, transactional
from tests.broker.raw import RawClient


@pytest.mark.parametrize("timestamp", [-3, -2, -1, 0])
def test_an_offline_partition_has_no_offsets_to_list(with_server: Run, timestamp: int) -> None:
    async def test(server: Server) -> None:
        server.broker.topics.create("t", 1).partitions[0].log.offline = "broken"
        client = await RawClient.connect(server.port)
        part = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name="t", partitions=[part])])
        response = await client.call(request, 7)
        assert response.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await client.close()

    with_server(test)


@pytest.mark.parametrize(("isolation_level", "offset"), [(0, 0), (1, -1)])
def test_the_latest_record_counts_when_it_may_be_read(with_server: Run, isolation_level: int, offset: int) -> None:
    async def test(server: Server) -> None:
        log = server.broker.topics.create("t", 1).partitions[0].log
        log.append(transactional(), now=1_000)
        client = await RawClient.connect(server.port)
        part = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=-3)
        topics = [ListOffsetsRequest.Topic(name="t", partitions=[part])]
        response = await client.call(ListOffsetsRequest(isolation_level=isolation_level, topics=topics), 7)
        assert response.topics[0].partitions[0].offset == offset
        await client.close()

    with_server(test)
