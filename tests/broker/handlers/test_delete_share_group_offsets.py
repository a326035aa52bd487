"""DeleteShareGroupOffsets, and DeleteGroups of share groups: their states go with them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.share_groups import GROUP, delete_offsets, describe_offsets, join, leave, offsets_of


def codes(response: Any) -> dict[str, int]:
    return {topic.topic_name: topic.error_code for topic in response.responses}


def states(broker: Broker) -> int:
    return sum(map(len, broker.share_state.active()))


def test_a_topics_states_are_deleted(ask: Ask, broker: Broker) -> None:
    there = broker.topics.create("there", 2).id
    broker.topics.create("other", 1)
    join(ask, "m", "there", "other")
    leave(ask)
    reset: list[tuple[str, tuple[UUID, int]]] = []
    broker.share_group_states.on_reset.append(lambda *place: reset.append(place))

    response = ask(delete_offsets("there", "absent"))

    assert codes(response) == {"absent": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there": ErrorCode.NONE}
    assert reset == [(GROUP, (there, 0)), (GROUP, (there, 1))]
    assert states(broker) == 1
    (group,) = ask(describe_offsets()).groups
    assert list(offsets_of(group)) == ["other"]
    assert codes(ask(delete_offsets("there"))) == {"there": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_group_with_members_is_left_alone(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    join(ask, "m", "there")

    assert ask(delete_offsets("there")).error_code == ErrorCode.NON_EMPTY_GROUP
    deleted = ask(DeleteGroupsRequest(groups_names=(GROUP,)))
    assert [each.error_code for each in deleted.results] == [ErrorCode.NON_EMPTY_GROUP]
    assert states(broker) == 1


def test_a_deleted_group_takes_its_states_along(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 3)
    join(ask, "m", "there")
    leave(ask)
    deleted: list[str] = []
    broker.share_group_states.on_deleted.append(deleted.append)

    response = ask(DeleteGroupsRequest(groups_names=(GROUP, "unknown")))

    assert [(each.group_id, each.error_code) for each in response.results] == [
        (GROUP, ErrorCode.NONE),
        ("unknown", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert (states(broker), deleted) == (0, [GROUP])
    assert ask(delete_offsets("there")).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_topics_that_the_client_may_not_read(ask: Ask, deny: Deny, broker: Broker) -> None:
    broker.topics.create("there", 1)
    join(ask, "m", "there")
    leave(ask)
    deny(Operation.READ, ResourceType.TOPIC, "there")

    assert codes(ask(delete_offsets("there"))) == {"there": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_groups_whose_offsets_can_not_be_deleted(ask: Ask, deny: Deny, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(delete_offsets("there", group_id="")).error_code == ErrorCode.INVALID_GROUP_ID
    deny(Operation.DELETE, ResourceType.GROUP, GROUP)
    assert ask(delete_offsets("there")).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    monkeypatch.setattr(GroupCoordinator, "offered", lambda self, kind: kind != "share")
    assert ask(delete_offsets("there")).error_code == ErrorCode.UNSUPPORTED_VERSION
