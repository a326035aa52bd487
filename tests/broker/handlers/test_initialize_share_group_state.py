"""InitializeShareGroupState, and what all five APIs of the share coordinator have in common."""

from __future__ import annotations

from kohort.broker.authorizer import Operation
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.share_state import Make, codes, every_api, initialize


def test_the_topic_keeps_everything_and_is_not_compacted(ask: Ask, broker: Broker) -> None:
    ask(initialize(broker.topics.create("there", 1).id, 0))

    topic = broker.topics.get("__share_group_state")
    assert topic is not None
    assert len(topic.partitions) == 50
    assert (topic.configs["cleanup.policy"], topic.configs["retention.ms"]) == ("delete", "-1")


@every_api
def test_each_partition_has_its_own_result(make: Make, ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id
    ask(initialize(topic_id, 0))

    found = dict(codes(ask(make(topic_id, 0, 1, -1))))

    assert found[0] == ErrorCode.NONE
    assert found[-1] == ErrorCode.INVALID_REQUEST
    assert found[1] in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST)


@every_api
def test_only_brokers_may(make: Make, ask: Ask, deny: Deny, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id
    deny(Operation.CLUSTER_ACTION)

    assert codes(ask(make(topic_id, 0, 1))) == [(index, ErrorCode.CLUSTER_AUTHORIZATION_FAILED) for index in (0, 1)]
    assert broker.topics.get("__share_group_state") is None


@every_api
def test_requests_without_partitions_or_group_get_an_empty_answer(make: Make, ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id

    assert ask(make(topic_id)).results == []
    assert ask(make(topic_id, 0, group_id=" ")).results == []


def test_a_repeated_partition_has_one_result(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id

    assert codes(ask(initialize(topic_id, 0, 0, 0))) == [(0, 0)]
