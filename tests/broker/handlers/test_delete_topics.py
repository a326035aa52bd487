from __future__ import annotations

from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest
from kohort.protocol.schema import NO_UUID
from tests.broker.handlers.conftest import Ask, Deny

Topic = DeleteTopicsRequest.Topic
UNKNOWN = UUID(int=99)


def test_by_name(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 2).id
    (gone,) = ask(DeleteTopicsRequest(topics=[Topic(name="there")])).responses
    assert (gone.name, gone.topic_id, gone.error_code) == ("there", topic_id, ErrorCode.NONE)
    assert broker.topics.get("there") is None
    assert not (broker.log_manager.directory / "there-0").exists()


def test_by_id(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id
    (gone,) = ask(DeleteTopicsRequest(topics=[Topic(name=None, topic_id=topic_id)])).responses
    assert (gone.name, gone.topic_id, gone.error_code) == ("there", topic_id, ErrorCode.NONE)


def test_by_name_in_old_versions(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    outcomes = ask(DeleteTopicsRequest(topic_names=("there", "absent", "")), 5).responses
    assert {outcome.name: outcome.error_code for outcome in outcomes} == {
        "there": ErrorCode.NONE,
        "absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_what_is_refused(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id
    broker.topics.create("__consumer_offsets", 1)
    asked = [
        Topic(name=None),
        Topic(name="there", topic_id=topic_id),
        Topic(name=None, topic_id=UNKNOWN),
        Topic(name="twice"),
        Topic(name="twice"),
        Topic(name="__consumer_offsets"),
    ]
    outcomes = ask(DeleteTopicsRequest(topics=asked)).responses
    assert [(outcome.name, outcome.error_code) for outcome in outcomes] == [
        (None, ErrorCode.INVALID_REQUEST),
        ("there", ErrorCode.INVALID_REQUEST),
        (None, ErrorCode.UNKNOWN_TOPIC_ID),
        ("twice", ErrorCode.INVALID_REQUEST),
        ("__consumer_offsets", ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    assert len(broker.topics) == 2


def test_named_by_name_and_by_id(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 1).id
    outcomes = ask(DeleteTopicsRequest(topics=[Topic(name="there"), Topic(name=None, topic_id=topic_id)])).responses
    assert [outcome.error_code for outcome in outcomes] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("settings", [{"delete.topic.enable": False}])
def test_deletion_can_be_switched_off(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    codes = {
        version: ask(DeleteTopicsRequest(topic_names=("there",)), version).responses[0].error_code for version in (2, 3)
    }
    assert codes == {2: ErrorCode.INVALID_REQUEST, 3: ErrorCode.TOPIC_DELETION_DISABLED}
    assert len(broker.topics) == 1


def test_an_id_does_not_betray_a_name_that_may_not_be_seen(ask: Ask, broker: Broker, deny: Deny) -> None:
    topic_id = broker.topics.create("secret", 1).id
    deny(Operation.DELETE)
    request = DeleteTopicsRequest(topics=[Topic(name=None, topic_id=topic_id)])
    seen = ask(request).responses[0].name
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "secret")
    (hidden,) = ask(request).responses
    assert (seen, hidden.name, hidden.error_code) == ("secret", None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_a_name_that_may_not_be_seen_is_refused_whether_it_exists_or_not(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("secret", 1)
    deny(Operation.DELETE)
    deny(Operation.DESCRIBE, ResourceType.TOPIC)
    outcomes = ask(DeleteTopicsRequest(topics=[Topic(name="secret"), Topic(name="absent")])).responses
    assert {(outcome.error_code, outcome.topic_id) for outcome in outcomes} == {
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, NO_UUID)
    }


def test_who_may_delete_the_topic_needs_nothing_of_the_cluster(ask: Ask, broker: Broker, deny: Deny) -> None:
    broker.topics.create("mine", 1)
    deny(Operation.DELETE, ResourceType.CLUSTER)
    assert ask(DeleteTopicsRequest(topics=[Topic(name="mine")])).responses[0].error_code == ErrorCode.NONE
