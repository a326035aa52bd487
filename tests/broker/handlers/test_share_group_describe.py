"""ShareGroupDescribe: groups as administrators see them."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.share_groups import GROUP, join


def describe(*group_ids: str, operations: bool = False) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=operations)


def test_a_group_with_a_member(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 2).id
    epoch = join(ask, "m", "there")

    (group,) = ask(describe(GROUP)).groups

    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", epoch, epoch)
    assert (group.assignor_name, group.authorized_operations) == ("simple", -(2**31))
    (member,) = group.members
    assert (member.member_id, member.member_epoch, tuple(member.subscribed_topic_names)) == ("m", epoch, ("there",))
    (topic,) = member.assignment.topic_partitions
    assert (topic.topic_id, topic.topic_name, tuple(topic.partitions)) == (topic_id, "there", (0, 1))


def test_groups_that_can_not_be_described(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.GROUP, "secret")

    groups = ask(describe("unknown", "secret", "", "unknown")).groups

    assert [(group.group_id, group.error_code) for group in groups] == [
        ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("", ErrorCode.INVALID_GROUP_ID),
    ]


def test_topics_that_the_client_may_not_describe(ask: Ask, deny: Deny, broker: Broker) -> None:
    broker.topics.create("there", 1)
    join(ask, "m", "there")
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "there")

    (group,) = ask(describe(GROUP)).groups

    assert (group.error_code, group.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, [])


def test_what_the_client_may_do(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    join(ask, "m", "there")

    (group,) = ask(describe(GROUP, operations=True)).groups

    assert group.authorized_operations > 0


def test_where_share_groups_are_off(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupCoordinator, "offered", lambda self, kind: kind != "share")

    assert ask(describe(GROUP)).groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
