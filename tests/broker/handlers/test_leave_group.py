"""LeaveGroup: members leave, or are removed."""

from __future__ import annotations

from kohort.broker.authorizer import Operation, ResourceType
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from tests.broker.handlers.conftest import Ask, Deny
from tests.broker.handlers.groups import stable_member

Member = LeaveGroupRequest.Member


def test_a_member_leaves(ask: Ask) -> None:
    request = LeaveGroupRequest(group_id="g", member_id=stable_member(ask))
    assert [ask(request, 2).error_code for _ in range(2)] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


def test_since_version_3_several_leave_and_each_has_its_outcome(ask: Ask) -> None:
    members = [Member(member_id=stable_member(ask)), Member(member_id="nobody")]
    response = ask(LeaveGroupRequest(group_id="g", members=members))
    assert response.error_code == ErrorCode.NONE
    assert [member.error_code for member in response.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


def test_who_removes_members_must_be_allowed_to_read_the_group(ask: Ask, deny: Deny) -> None:
    deny(Operation.READ, ResourceType.GROUP, "g")
    response = ask(LeaveGroupRequest(group_id="g", members=[Member(member_id="m")]))
    assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
