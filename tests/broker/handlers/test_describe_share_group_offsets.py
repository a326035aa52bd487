"""DescribeShareGroupOffsets: start offsets and lags, in every version."""

from __future__ import annotations

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.group_coordinator import GroupCoordinator
from kohort.protocol.errors import ErrorCode
from tests.broker.handlers.conftest import Ask, Deny, append_records
from tests.broker.handlers.share_groups import GROUP, describe_offsets, join, offsets_of


@pytest.mark.parametrize(("version", "lag"), [(0, -1), (1, 5)])
def test_lag_is_what_is_not_done_with(version: int, lag: int, ask: Ask, broker: Broker) -> None:
    topic_id = broker.topics.create("there", 2).id
    append_records(broker, "there", 0, 10)
    join(ask, "m", "there")
    broker.share_state.write(GROUP, topic_id, 0, -1, -1, 3, 2, ())

    (group,) = ask(describe_offsets({"there": (0, 1)}), version).groups

    assert offsets_of(group) == {"there": {0: (3, lag, 0), 1: (-1, -1, 0)}}
    assert group.topics[0].topic_id == topic_id
    (everything,) = ask(describe_offsets(), version).groups
    assert offsets_of(everything) == offsets_of(group)


def test_what_is_not_there_is_absent_not_an_error(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)

    (group,) = ask(describe_offsets({"there": (0, 7), "absent": (0,)})).groups

    assert group.error_code == ErrorCode.NONE
    assert offsets_of(group) == {"there": {0: (-1, -1, 0), 7: (-1, -1, 0)}, "absent": {0: (-1, -1, 0)}}
    assert ask(describe_offsets()).groups[0].topics == []
    assert ask(describe_offsets({})).groups[0].topics == []


def test_topics_that_the_client_may_not_describe(ask: Ask, deny: Deny, broker: Broker) -> None:
    broker.topics.create("there", 1)
    broker.topics.create("secret", 1)
    join(ask, "m", "there", "secret")
    deny(Operation.DESCRIBE, ResourceType.TOPIC, "secret")

    (named,) = ask(describe_offsets({"there": (0,), "secret": (0,)})).groups
    assert offsets_of(named) == {
        "there": {0: (-1, -1, 0)},
        "secret": {0: (-1, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)},
    }
    (everything,) = ask(describe_offsets()).groups
    assert list(offsets_of(everything)) == ["there"]


def test_several_groups_each_with_its_own_error(ask: Ask, deny: Deny, monkeypatch: pytest.MonkeyPatch) -> None:
    deny(Operation.DESCRIBE, ResourceType.GROUP, "secret")
    groups = ask(describe_offsets(None, "a", "secret")).groups
    assert [(group.group_id, group.error_code) for group in groups] == [
        ("a", ErrorCode.NONE),
        ("secret", ErrorCode.GROUP_AUTHORIZATION_FAILED),
    ]
    assert ask(describe_offsets(None)).groups[0].group_id == GROUP
    monkeypatch.setattr(GroupCoordinator, "offered", lambda self, kind: kind != "share")
    assert ask(describe_offsets()).groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
