"""AlterShareGroupOffsets: where an empty group goes on."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask, Deny, append_records
from tests.broker.handlers.share_groups import GROUP, alter, describe_offsets, join, leave, offsets_of


def codes(response: Any) -> dict[str, dict[int, int]]:
    return {
        topic.topic_name: {part.partition_index: part.error_code for part in topic.partitions}
        for topic in response.responses
    }


def test_offsets_are_set_and_share_partitions_reset(ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 2).id
    append_records(broker, "there", 0, 10)
    join(ask, "m", "there")
    leave(ask)
    reset: list[tuple[str, tuple[UUID, int]]] = []
    broker.share_group_states.on_reset.append(lambda *place: reset.append(place))

    response = ask(alter({"there": {0: 4}}))

    assert (response.error_code, codes(response)) == (ErrorCode.NONE, {"there": {0: 0}})
    assert response.responses[0].topic_id == topic_id
    assert reset == [(GROUP, (topic_id, 0))]
    (group,) = ask(describe_offsets()).groups
    assert offsets_of(group) == {"there": {0: (4, 6, 0), 1: (-1, -1, 0)}}


def test_a_group_that_is_not_there_is_made(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)

    assert ask(alter({"there": {0: 0}})).error_code == ErrorCode.NONE

    (group,) = ask(describe_offsets()).groups
    assert offsets_of(group) == {"there": {0: (0, 0, 0)}}


def test_a_group_with_members_is_left_alone(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    join(ask, "m", "there")

    response = ask(alter({"there": {0: 0}}))

    assert (response.error_code, response.responses) == (ErrorCode.NON_EMPTY_GROUP, [])


def test_topics_and_partitions_that_can_not_be_altered(ask: Ask, deny: Deny, broker: Broker) -> None:
    broker.topics.create("there", 1)
    broker.topics.create("secret", 1)
    deny(Operation.READ, ResourceType.TOPIC, "secret")

    response = ask(alter({"there": {0: 0, 1: 0}, "secret": {0: 0}, "absent": {3: 0}}))

    assert codes(response) == {
        "there": {0: ErrorCode.NONE, 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        "secret": {0: ErrorCode.TOPIC_AUTHORIZATION_FAILED},
        "absent": {3: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
    }


def test_groups_that_can_not_be_altered(ask: Ask, deny: Deny, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(alter({}, "")).error_code == ErrorCode.INVALID_GROUP_ID
    deny(Operation.READ, ResourceType.GROUP, GROUP)
    assert ask(alter({})).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    monkeypatch.setattr(GroupCoordinator, "offered", lambda self, kind: kind != "share")
    assert ask(alter({})).error_code == ErrorCode.UNSUPPORTED_VERSION
