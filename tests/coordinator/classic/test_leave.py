from __future__ import annotations

import logging

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from tests.coordinator.classic.driver import Driver


def test_a_member_that_leaves_is_gone_at_once() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    assert driver.leave((first, None)) == [ErrorCode.NONE]
    assert (driver.members(), driver.state()) == ([second], "PreparingRebalance")
    assert driver.join(second).response.generation_id == 2


def test_log_lines_say_who_comes_and_goes_and_from_where(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.leave((member, None))
    came = f"member joins group=group member={member} instance=None client=client host=10.0.0.1"
    gone = f"member removed group=group member={member} client=client host=10.0.0.1 because=it left"
    assert came in caplog.messages and gone in caplog.messages


def test_the_last_one_leaves_an_empty_group() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.leave((member, None))
    assert driver.state() == "Empty"
    assert driver.replayed().describe_group("group", 6).group_state == "Empty"


def test_several_leave_at_once_with_an_outcome_each() -> None:
    driver = Driver()
    first, second, third = driver.stable_group(3)
    errors = driver.leave((first, None), ("stranger", None), (second, "no-such-instance"))
    assert errors == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.members() == [second, third]


def test_who_waits_for_its_join_hears_that_it_is_out() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    join = driver.join(first)
    driver.leave((first, None))
    assert join.error is ErrorCode.UNKNOWN_MEMBER_ID and join.response.member_id == ""
    assert driver.members() == [second]


def test_who_waits_for_its_assignment_hears_that_it_is_out() -> None:
    driver = Driver()
    _, follower = (driver.enter()[0] for _ in range(2))
    driver.sleep(6_000)
    sync = driver.sync(follower, 1)
    driver.leave((follower, None))
    assert sync.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_leaves_while_others_wait_for_it_lets_them_go_on() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    join = driver.join(first)
    driver.leave((second, None))
    assert join.response.generation_id == 2


def test_a_pending_id_can_leave_without_a_rebalance() -> None:
    driver = Driver()
    driver.stable_group(1)
    pending = driver.join().response.member_id
    assert driver.leave((pending, None)) == [ErrorCode.NONE]
    assert driver.state() == "Stable"
    assert driver.join(pending).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_group_knows_none_of_them() -> None:
    assert Driver().leave(("a", None), ("", "b")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def test_older_versions_name_one_member_and_get_one_error() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)

    def leave(member_id: str, group: str = "group") -> ErrorCode:
        request = LeaveGroupRequest(group_id=group, member_id=member_id)
        call = driver.send(driver.shard.classic.leave, request, 2)
        assert call.response.members == []
        return call.error

    assert leave("stranger") is ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(member, group="") is ErrorCode.INVALID_GROUP_ID
    assert leave(member) is ErrorCode.NONE
    assert driver.state() == "Empty"
