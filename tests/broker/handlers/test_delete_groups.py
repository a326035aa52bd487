"""DeleteGroups: empty groups are deleted with their offsets."""

from __future__ import annotations

from kohort.broker.authorizer import Operation, ResourceType
from kohort.broker.broker import Broker
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import commit, stable_member


def delete(ask: Ask, *names: str) -> list[tuple[str, int]]:
    return [(result.group_id, result.error_code) for result in ask(DeleteGroupsRequest(groups_names=names)).results]


def test_each_group_has_its_outcome_once(ask: Ask, broker: Broker) -> None:
    broker.topics.create("there", 1)
    stable_member(ask)
    commit(ask, ("there", 0), group_id="empty")
    assert delete(ask, "empty", "g", "absent", "g") == [
        ("empty", ErrorCode.NONE),
        ("g", ErrorCode.NON_EMPTY_GROUP),
        ("absent", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert delete(ask, "empty") == [("empty", ErrorCode.GROUP_ID_NOT_FOUND)]


def test_no_groups(ask: Ask) -> None:
    assert delete(ask) == []


def test_who_may_not_delete_the_group(ask: Ask, deny: Deny) -> None:
    deny(Operation.DELETE, ResourceType.GROUP, "g")
    assert delete(ask, "g", "other") == [
        ("g", ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("other", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


def test_why_a_group_was_kept(ask: Ask, deny: Deny) -> None:
    stable_member(ask)
    deny(Operation.DELETE, ResourceType.GROUP, "other")
    results = ask(DeleteGroupsRequest(groups_names=("g", "absent", "other")), 3).results
    assert [result.error_message for result in results] == [
        "The group has members.",
        "There is no such group.",
        "The client may not delete the group.",
    ]
    (old,) = ask(DeleteGroupsRequest(groups_names=("g",)), 2).results
    assert old.error_message is None
