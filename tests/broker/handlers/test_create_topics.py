from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.create_topics import CreateTopicsRequest
from kohort.protocol.schema import NO_UUID
from tests.broker.handlers.conftest import Ask, Deny

Topic = CreateTopicsRequest.Topic
Assignment = Topic.Assignment


def wanted(name: str, **fields: Any) -> Topic:
    configs = [Topic.Config(name=key, value=value) for key, value in fields.pop("configs", {}).items()]
    return Topic(**{"name": name, "num_partitions": 1, "replication_factor": 1, "configs": configs, **fields})


def by_hand(*replicas: tuple[int, ...]) -> dict[str, Any]:
    assignments = [Assignment(partition_index=index, broker_ids=nodes) for index, nodes in enumerate(replicas)]
    return {"num_partitions": -1, "replication_factor": -1, "assignments": assignments}


def test_a_topic_is_there_with_its_configuration_at_once(ask: Ask, broker: Broker) -> None:
    request = CreateTopicsRequest(topics=[wanted("made", num_partitions=3, configs={"retention.ms": "5000"})])
    (made,) = ask(request).topics
    topic = broker.topics.get("made")
    assert topic is not None
    assert (made.error_code, made.topic_id, made.num_partitions, made.replication_factor) == (0, topic.id, 3, 1)
    assert [partition.log.config.retention_ms for partition in topic.partitions] == [5000] * 3


def test_the_response_tells_all_settings_with_their_sources(ask: Ask) -> None:
    (made,) = ask(CreateTopicsRequest(topics=[wanted("made", configs={"retention.ms": "5000"})])).topics
    configs = {config.name: (config.value, config.config_source) for config in made.configs}
    assert configs["retention.ms"] == ("5000", 1)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert len(configs) == 34


@pytest.mark.parametrize("settings", [{"num.partitions": 4}])
def test_numbers_left_to_the_broker_are_its_defaults(ask: Ask) -> None:
    (made,) = ask(CreateTopicsRequest(topics=[wanted("made", num_partitions=-1, replication_factor=-1)])).topics
    assert (made.num_partitions, made.replication_factor) == (4, 1)


def test_replicas_may_be_put_on_the_one_node_by_hand(ask: Ask, broker: Broker) -> None:
    (made,) = ask(CreateTopicsRequest(topics=[wanted("made", **by_hand((1,), (1,)))])).topics
    assert (made.error_code, made.num_partitions) == (0, 2)


def test_only_checking_creates_nothing(ask: Ask, broker: Broker) -> None:
    (checked,) = ask(CreateTopicsRequest(topics=[wanted("made")], validate_only=True)).topics
    assert (checked.error_code, checked.topic_id, checked.num_partitions) == (0, NO_UUID, 1)
    assert broker.topics.get("made") is None


@pytest.mark.parametrize(
    ("topic", "code", "says"),
    [
        (wanted(""), ErrorCode.INVALID_TOPIC_EXCEPTION, "empty"),
        (wanted(".."), ErrorCode.INVALID_TOPIC_EXCEPTION, ".."),
        (wanted("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION, "a b"),
        (wanted("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION, "249"),
        (wanted("there_is"), ErrorCode.INVALID_TOPIC_EXCEPTION, "there.is"),
        (wanted("there.is"), ErrorCode.TOPIC_ALREADY_EXISTS, "there.is"),
        (wanted("__cluster_metadata"), ErrorCode.INVALID_REQUEST, "prohibited"),
        (wanted("__consumer_offsets"), ErrorCode.INVALID_REQUEST, "prohibited"),
        (wanted("made", replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR, "factor of 3"),
        (wanted("made", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (wanted("made", replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR, "larger than 0"),
        (wanted("made", num_partitions=0), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (wanted("made", num_partitions=-(2**31)), ErrorCode.INVALID_PARTITIONS, "non-positive"),
        (wanted("made", num_partitions=10_001), ErrorCode.POLICY_VIOLATION, "10000"),
        (wanted("made", num_partitions=2**31 - 1), ErrorCode.POLICY_VIOLATION, "10000"),
        (wanted("made", configs={"retention.msec": "1"}), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (wanted("made", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (wanted("made", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG, "retention.ms"),
        (wanted("made", configs={"cleanup.policy": "compost"}), ErrorCode.INVALID_CONFIG, "cleanup.policy"),
        (wanted("made", **by_hand((2,))), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 2"),
        (wanted("made", **by_hand((1, 1))), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "more than once"),
        (wanted("made", **by_hand(())), ErrorCode.INVALID_REPLICA_ASSIGNMENT, "no replicas"),
        (wanted("made", **{**by_hand((1,)), "num_partitions": 1}), ErrorCode.INVALID_REQUEST, "numPartitions"),
        (wanted("made", **{**by_hand((1,)), "replication_factor": 1}), ErrorCode.INVALID_REQUEST, "replication"),
        (
            wanted("made", **{**by_hand(), "assignments": [Assignment(partition_index=1, broker_ids=(1,))]}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "from 0",
        ),
        (
            wanted("made", **{**by_hand(), "assignments": [Assignment(partition_index=0, broker_ids=(1,))] * 2}),
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "multiple",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_what_is_refused(topic: Topic, code: ErrorCode, says: str, ask: Ask, broker: Broker) -> None:
    broker.topics.create("there.is", 1)
    (refused,) = ask(CreateTopicsRequest(topics=[topic])).topics
    assert refused.error_code == code
    assert says in refused.error_message
    assert (refused.num_partitions, refused.topic_id, refused.configs) == (-1, NO_UUID, [])
    assert [topic.name for topic in broker.topics] == ["there.is"]


def test_one_that_is_named_twice_is_answered_once_and_not_made(ask: Ask, broker: Broker) -> None:
    outcomes = ask(CreateTopicsRequest(topics=[wanted("twice"), wanted("once"), wanted("twice")])).topics
    codes = {outcome.name: outcome.error_code for outcome in outcomes}
    assert codes == {"once": ErrorCode.NONE, "twice": ErrorCode.INVALID_REQUEST}
    assert len(outcomes) == 2


def test_too_many_partitions_in_all_spoil_the_request(ask: Ask, broker: Broker) -> None:
    request = CreateTopicsRequest(topics=[wanted("one", num_partitions=6000), wanted("two", num_partitions=6000)])
    assert {outcome.error_code for outcome in ask(request).topics} == {ErrorCode.POLICY_VIOLATION}
    assert len(broker.topics) == 0


def test_nothing_is_asked_for(ask: Ask) -> None:
    assert ask(CreateTopicsRequest()).topics == []


def test_who_may_create_one_topic_needs_nothing_of_the_cluster(ask: Ask, deny: Deny, broker: Broker) -> None:
    deny(Operation.CREATE, ResourceType.CLUSTER)
    deny(Operation.CREATE, ResourceType.TOPIC, "theirs")
    outcomes = ask(CreateTopicsRequest(topics=[wanted("mine"), wanted("theirs")])).topics
    codes = {outcome.name: outcome.error_code for outcome in outcomes}
    assert codes == {"mine": ErrorCode.NONE, "theirs": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_who_may_not_describe_configs_gets_none(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC)
    (made,) = ask(CreateTopicsRequest(topics=[wanted("made")])).topics
    assert (made.error_code, made.topic_config_error_code) == (0, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (made.configs, made.num_partitions) == ([], -1)


@pytest.mark.parametrize("settings", [{"default.replication.factor": 3}])
def test_the_default_replication_factor_counts(ask: Ask) -> None:
    response = ask(
        CreateTopicsRequest(topics=[CreateTopicsRequest.Topic(name="t", num_partitions=1, replication_factor=-1)])
    )
    assert response.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
