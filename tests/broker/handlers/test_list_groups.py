"""ListGroups: groups by state and type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.broker.coordinator_runtime import ShardState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.list_groups import ListGroupsRequest
from tests.broker.handlers.conftest import Ask, Deny, Rules
from tests.broker.handlers.groups import commit, stable_member
from tests.broker.streams.members import (
    Crowd,
    counting,
)


@pytest.mark.parametrize(
    ("states", "types", "groups"),
    [
        ((), (), {"g", "other"}),
        (("Stable",), (), {"g"}),
        (("Empty",), ("Classic",), {"other"}),
        ((), ("Streams",), set()),
    ],
)
def test_groups_are_listed_by_state_and_type(
    states: tuple[str, ...], types: tuple[str, ...], groups: set[str], ask: Ask, broker: Broker
) -> None:
    broker.topics.create("there", 1)
    stable_member(ask)
    commit(ask, ("there", 0), group_id="other")
    listed = ask(ListGroupsRequest(states_filter=states, types_filter=types)).groups
    assert {group.group_id for group in listed} == groups


def test_groups_that_may_not_be_described_are_left_out(ask: Ask, deny: Deny) -> None:
    stable_member(ask)
    deny(Operation.DESCRIBE, ResourceType.GROUP)
    as_cluster = ask(ListGroupsRequest()).groups
    deny(Operation.DESCRIBE, ResourceType.CLUSTER)
    assert ([group.group_id for group in as_cluster], ask(ListGroupsRequest()).groups) == (["g"], [])


def test_while_a_shard_is_loading_there_is_no_list(ask: Ask, broker: Broker) -> None:
    broker.groups.start()
    broker.groups._entries[0].state = ShardState.LOADING
    assert ask(ListGroupsRequest()).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


Run = Callable[..., None]


def test_groups_are_listed_for_who_may_see_them(with_crowd: Run) -> None:
    rules = Rules((Operation.DESCRIBE, ResourceType.CLUSTER, None), (Operation.DESCRIBE, ResourceType.GROUP, "app"))

    async def test(crowd: Crowd) -> None:
        await crowd.joined(counting())
        member = await crowd.joined(counting("other"), group="other")

        response = await member.client.call(ListGroupsRequest())

        assert [group.group_id for group in response.groups] == ["other"]

    with_crowd(test, authorizer=rules)
