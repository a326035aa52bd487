from __future__ import annotations

from kohort.protocol.errors import ErrorCode
from tests.coordinator.classic.driver import SESSION, Driver


def test_a_member_of_a_stable_group_is_told_that_all_is_well() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    assert driver.heartbeat(member, 1) is ErrorCode.NONE


def test_without_a_group_id_the_request_makes_no_sense() -> None:
    assert Driver().heartbeat("member", 1, group="") is ErrorCode.INVALID_GROUP_ID


def test_an_unknown_group_knows_no_member() -> None:
    assert Driver().heartbeat("member", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unknown_member_is_told_so() -> None:
    driver = Driver()
    driver.stable_group(1)
    assert driver.heartbeat("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_unknown_comes_before_a_wrong_generation() -> None:
    driver = Driver()
    driver.stable_group(1)
    assert driver.heartbeat("stranger", 7) is ErrorCode.UNKNOWN_MEMBER_ID


def test_another_generation_is_refused() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    assert driver.heartbeat(member, 0) is ErrorCode.ILLEGAL_GENERATION
    assert driver.heartbeat(member, 2) is ErrorCode.ILLEGAL_GENERATION


def test_a_wrong_generation_is_no_sign_of_life() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.sleep(SESSION - 1)
    driver.heartbeat(member, 0)
    driver.sleep(1)
    assert driver.state() == "Empty"


def test_while_members_join_a_heartbeat_says_rebalance_and_counts() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.join(first)  # the leader's join rebalances
    assert driver.state() == "PreparingRebalance"
    for _ in range(5):
        driver.sleep(SESSION - 1)
        assert driver.heartbeat(second, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_while_members_sync_a_heartbeat_is_fine_and_counts() -> None:
    driver = Driver()
    member, join = driver.enter()
    driver.sleep(3_000)
    assert driver.state() == "CompletingRebalance"
    for _ in range(5):
        driver.sleep(SESSION - 1)
        assert driver.heartbeat(member, join.response.generation_id) is ErrorCode.NONE


def test_heartbeats_keep_a_member_alive_for_as_long_as_they_come() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    for _ in range(100):
        driver.sleep(SESSION - 1)
        assert driver.heartbeat(member, 1) is ErrorCode.NONE


def test_a_silent_member_is_removed_at_its_session_timeout_not_before() -> None:
    driver = Driver()
    silent, alive = driver.stable_group(2)
    driver.sleep(5_000)
    driver.heartbeat(alive, 1)
    driver.sleep(SESSION - 5_001)
    assert (driver.state(), driver.members()) == ("Stable", [silent, alive])
    driver.sleep(1)
    assert (driver.state(), driver.members()) == ("PreparingRebalance", [alive])


def test_the_last_members_failure_empties_the_group() -> None:
    driver = Driver()
    driver.stable_group(1)
    driver.sleep(SESSION)
    assert driver.state() == "Empty"


def test_heartbeats_of_the_same_millisecond_leave_one_waiting() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    for _ in range(10):
        driver.heartbeat(member, 1)
    assert driver.shard.classic.rebalancer.heartbeats.delayed == 1


def test_a_member_that_waits_for_its_assignment_is_alive() -> None:
    driver = Driver()
    entered = [driver.enter() for _ in range(2)]
    driver.sleep(6_000)
    leader = entered[0][1].response.leader
    follower = next(member for member, _ in entered if member != leader)
    waits = driver.sync(follower, 1)
    for _ in range(3):
        driver.sleep(SESSION - 1)
        driver.heartbeat(leader, 1)
    assert not waits.answered and follower in driver.members()


def test_a_member_that_waits_for_the_others_to_join_is_alive() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    waits = driver.join(first)
    for _ in range(3):
        driver.sleep(SESSION - 1)
        driver.heartbeat(second, 1)
    assert not waits.answered and first in driver.members()
