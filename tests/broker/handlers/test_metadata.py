"""Metadata: the broker and its topics."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.metadata import MetadataRequest
from tests.broker.handlers.conftest import Rules
from tests.broker.handlers.served import Run, ask
from tests.broker.raw import RawClient


@pytest.mark.parametrize(
    "topic", [MetadataRequest.Topic(name=None), MetadataRequest.Topic(name="t", topic_id=UUID(int=5))]
)
def test_ids_come_with_version_12(with_server: Run, topic: MetadataRequest.Topic) -> None:
    response = ask(with_server, MetadataRequest(topics=[topic, MetadataRequest.Topic(name="t")]), 11)
    assert {topic.error_code for topic in response.topics} == {ErrorCode.INVALID_REQUEST}


def test_a_flood_of_unknown_topics_creates_none(with_server: Run) -> None:
    async def test(server: Server) -> None:
        client = await RawClient.connect(server.port)
        topics = [MetadataRequest.Topic(name=f"t{number}") for number in range(101)]
        response = await client.call(MetadataRequest(topics=topics, allow_auto_topic_creation=True), 9)
        assert {topic.error_code for topic in response.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert not len(server.broker.topics)
        await client.close()

    with_server(test, "num.partitions=100")


def test_operations_on_the_cluster_are_none_for_who_may_not_describe_it(with_server: Run) -> None:
    rules = Rules((Operation.DESCRIBE, ResourceType.CLUSTER, None))
    request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
    assert ask(with_server, request, 9, authorizer=rules).cluster_authorized_operations == 0
