"""FindCoordinator: this broker coordinates every group and every transaction."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.handlers.conftest import NODE, Ask, Deny


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_the_coordinator_is_this_broker_and_its_topic_is_created(
    key_type: int, topic: str, ask: Ask, broker: Broker
) -> None:
    found = ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=("a", "b"))).coordinators
    assert [(each.key, each.node_id, each.host, each.port) for each in found] == [
        ("a", NODE, "localhost", 9092),
        ("b", NODE, "localhost", 9092),
    ]
    assert broker.topics.get(topic) is not None


def test_before_version_4_there_is_one_key(ask: Ask) -> None:
    found = ask(FindCoordinatorRequest(key="a"), 3)
    assert (found.error_code, found.node_id, found.port) == (ErrorCode.NONE, NODE, 9092)


@pytest.mark.parametrize(
    ("key_type", "kind", "code"),
    [
        (0, ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (1, ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ],
)
def test_who_may_not_describe_the_key(key_type: int, kind: ResourceType, code: ErrorCode, ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, kind, "a")
    found = ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=("a", "b"))).coordinators
    assert [each.error_code for each in found] == [code, ErrorCode.NONE]


@pytest.mark.parametrize("version", [3, 6])
def test_an_unknown_type_of_key(version: int, ask: Ask) -> None:
    keys = {"key": "a"} if version < 4 else {"coordinator_keys": ("a",)}
    response = ask(FindCoordinatorRequest(key_type=9, **keys), version)
    refused = response if version < 4 else response.coordinators[0]
    assert (refused.error_code, refused.node_id) == (ErrorCode.INVALID_REQUEST, -1)


KEY = "g:AAAAAAAAAAAAAAAAAAAABw:0"


def test_the_coordinator_of_a_share_partition_is_this_broker(ask: Ask, broker: Broker) -> None:
    found = ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(KEY, "g:0"))).coordinators
    assert [(each.key, each.error_code, each.node_id) for each in found] == [
        (KEY, ErrorCode.NONE, NODE),
        ("g:0", ErrorCode.INVALID_REQUEST, -1),
    ]
    assert broker.topics.get("__share_group_state") is not None


def test_before_version_6_share_partitions_have_no_coordinator(ask: Ask) -> None:
    (found,) = ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(KEY,)), 5).coordinators
    assert found.error_code == ErrorCode.INVALID_REQUEST


def test_only_brokers_may_ask_for_the_coordinator_of_a_share_partition(ask: Ask, deny: Deny) -> None:
    deny(Operation.CLUSTER_ACTION)
    (found,) = ask(FindCoordinatorRequest(key_type=2, coordinator_keys=(KEY,))).coordinators
    assert found.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
