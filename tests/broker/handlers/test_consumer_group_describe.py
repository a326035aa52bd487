"""ConsumerGroupDescribe: consumer groups with their members and partitions."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.consumer_groups import joining


@pytest.fixture(autouse=True)
def group(broker: Broker, ask: Ask) -> None:
    broker.topics.create("there", 2)
    broker.groups.start()
    if broker.groups.offered("consumer"):
        assert ask(joining(), client_id="c").error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 1])
def test_each_group_is_described_once(ask: Ask, version: int) -> None:
    found, unknown = ask(ConsumerGroupDescribeRequest(group_ids=("g", "other", "g")), version).groups
    assert (found.group_id, found.group_state, found.assignor_name) == ("g", "Stable", "uniform")
    (member,) = found.members
    assert (member.member_id, member.client_id, member.member_epoch) == ("m", "c", 2)
    assert [(topic.topic_name, topic.partitions) for topic in member.assignment.topic_partitions] == [("there", (0, 1))]
    assert member.member_type == (1 if version else -1)
    assert unknown.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_an_empty_name(ask: Ask) -> None:
    (refused,) = ask(ConsumerGroupDescribeRequest(group_ids=("",))).groups
    assert refused.error_code == ErrorCode.INVALID_GROUP_ID


def test_what_may_be_done_with_a_group_is_told(ask: Ask, deny: Deny) -> None:
    deny(Operation.DELETE, ResourceType.GROUP, "g")
    (group,) = ask(ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=True)).groups
    allowed = {Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}
    assert group.authorized_operations == sum(1 << operation for operation in allowed)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (ResourceType.GROUP, "g", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.TOPIC, "there", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_a_group_that_may_not_be_described(
    ask: Ask, deny: Deny, kind: ResourceType, name: str, code: ErrorCode
) -> None:
    deny(Operation.DESCRIBE, kind, name)
    (group,) = ask(ConsumerGroupDescribeRequest(group_ids=("g",))).groups
    assert (group.error_code, group.members, group.group_state) == (code, [], "")


@pytest.mark.parametrize("settings", [{"group.coordinator.rebalance.protocols": "classic,streams"}])
def test_where_consumer_groups_are_not_offered_it_is_said_at_once(ask: Ask) -> None:
    (group,) = ask(ConsumerGroupDescribeRequest(group_ids=("g",))).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
