"""Metadata: the broker and its topics."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.server import Server
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.metadata import MetadataRequest
from tests.broker.handlers.conftest import NODE, Ask, Deny, Rules
from tests.broker.handlers.served import Run, answer_of
from tests.broker.raw import RawClient


@pytest.mark.parametrize(
    "topic", [MetadataRequest.Topic(name=None), MetadataRequest.Topic(name="t", topic_id=UUID(int=5))]
)
def test_ids_come_with_version_12(with_server: Run, topic: MetadataRequest.Topic) -> None:
    response = answer_of(with_server, MetadataRequest(topics=[topic, MetadataRequest.Topic(name="t")]), 11)
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
    assert answer_of(with_server, request, 9, authorizer=rules).cluster_authorized_operations == 0


def topics(ask: Ask, *names: str, create: bool = False) -> list[tuple[str, int, int]]:
    wanted = [MetadataRequest.Topic(name=name) for name in names]
    response = ask(MetadataRequest(topics=wanted, allow_auto_topic_creation=create))
    return [(topic.name, topic.error_code, len(topic.partitions)) for topic in response.topics]


def test_the_broker_and_all_topics(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 2)
    response = ask(MetadataRequest(topics=None))
    assert [(node.node_id, node.host, node.port) for node in response.brokers] == [(NODE, "localhost", 9092)]
    assert (response.cluster_id, response.controller_id) == (broker.cluster_id, NODE)
    (topic,) = response.topics
    assert [(each.leader_id, each.replica_nodes, each.isr_nodes) for each in topic.partitions] == [
        (NODE, (NODE,), (NODE,))
    ] * 2


def test_topics_that_are_named(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    assert topics(ask, "there", "absent", "a b") == [
        ("there", ErrorCode.NONE, 1),
        ("absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0),
        ("a b", ErrorCode.INVALID_TOPIC_EXCEPTION, 0),
    ]


def test_an_unknown_id(ask: Ask) -> None:
    response = ask(MetadataRequest(topics=[MetadataRequest.Topic(name=None, topic_id=UUID(int=5))]))
    assert [topic.error_code for topic in response.topics] == [ErrorCode.UNKNOWN_TOPIC_ID]


def test_a_topic_is_created_for_who_may(ask: Ask, broker: Broker, deny: Deny) -> None:
    assert topics(ask, "new", create=True) == [("new", ErrorCode.NONE, 1)]
    deny(Operation.CREATE)
    assert topics(ask, "other", create=True) == [("other", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]


def test_topics_that_may_not_be_described(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("there", 1)
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")
    assert topics(ask, "there") == [("there", ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)]
    assert ask(MetadataRequest(topics=None)).topics == []
