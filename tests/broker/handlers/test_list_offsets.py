"""ListOffsets: offsets by time."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_offsets import ListOffsetsRequest
from tests.broker.handlers.conftest import NOW, Ask, Deny, append_records
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


def offsets(ask: Ask, timestamp: int, *indexes: int, version: int = 10, epoch: int = -1) -> list[tuple[int, int]]:
    parts = [
        ListOffsetsRequest.Topic.Partition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch)
        for index in indexes
    ]
    request = ListOffsetsRequest(topics=[ListOffsetsRequest.Topic(name="there", partitions=parts)])
    return [(part.error_code, part.offset) for part in ask(request, version).topics[0].partitions]


@pytest.mark.parametrize(
    ("timestamp", "offset"), [(-1, 3), (-2, 0), (-3, 0), (-4, 0), (-5, -1), (NOW, 0), (NOW + 1, -1)]
)
def test_offsets_by_time(timestamp: int, offset: int, ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    append_records(broker, "there", 0, 3)
    assert offsets(ask, timestamp, 0) == [(ErrorCode.NONE, offset)]


def test_what_is_refused(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert offsets(ask, -1, 0, 0, 9) == [
        (ErrorCode.NONE, 0),
        (ErrorCode.INVALID_REQUEST, -1),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]
    assert offsets(ask, -3, 0, version=6) == [(ErrorCode.UNSUPPORTED_VERSION, -1)]
    assert offsets(ask, -99, 0) == [(ErrorCode.UNSUPPORTED_VERSION, -1)]
    assert offsets(ask, -1, 0, epoch=5) == [(ErrorCode.UNKNOWN_LEADER_EPOCH, -1)]


def test_who_may_not_describe_the_topic(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")
    assert offsets(ask, -1, 0) == [(ErrorCode.TOPIC_AUTHORIZATION_FAILED, -1)]
