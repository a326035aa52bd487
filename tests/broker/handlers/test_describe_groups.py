"""DescribeGroups: classic groups with their members."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import stable_member


def describe(ask: Ask, group_id: str, version: int = 6, *, operations: bool = False) -> Any:
    request = DescribeGroupsRequest(groups=(group_id,), include_authorized_operations=operations)
    return ask(request, version).groups[0]


def test_a_group_with_its_member(ask: Ask) -> None:
    member_id = stable_member(ask)
    group = describe(ask, "g")
    assert (group.error_code, group.group_state, group.protocol_type) == (ErrorCode.NONE, "Stable", "consumer")
    assert [(member.member_id, member.member_assignment) for member in group.members] == [(member_id, b"a")]


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_group_that_does_not_exist_is_dead(version: int, code: ErrorCode, ask: Ask) -> None:
    group = describe(ask, "absent", version)
    assert (group.error_code, group.group_state) == (code, "Dead")


def test_the_operations_that_the_client_is_allowed(ask: Ask, deny: Deny) -> None:
    stable_member(ask)
    everything = describe(ask, "g", operations=True).authorized_operations
    deny(Operation.DELETE, ResourceType.GROUP)
    assert describe(ask, "g", operations=True).authorized_operations == everything - (1 << Operation.DELETE)


def test_who_may_not_describe_the_group(ask: Ask, deny: Deny) -> None:
    deny(Operation.DESCRIBE, ResourceType.GROUP, "g")
    assert describe(ask, "g").error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


def test_a_coordinator_that_is_loading(ask: Ask, broker: Broker) -> None:
    broker.groups.start()
    for entry in broker.groups._entries:
        entry.state = ShardState.LOADING
    assert describe(ask, "g").error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
