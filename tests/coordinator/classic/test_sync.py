from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from tests.coordinator.classic.driver import REBALANCE, SESSION, Driver


def completing(count: int = 2) -> tuple[Driver, list[str]]:
    """A group that waits for its leader's assignments; the first member leads."""
    driver = Driver()
    members = [driver.enter()[0] for _ in range(count)]
    driver.sleep(6_000)
    assert driver.state() == "CompletingRebalance"
    return driver, members


def test_followers_wait_for_the_leader_who_gives_everyone_its_part() -> None:
    driver, (leader, follower) = completing()
    waits = driver.sync(follower, 1)
    assert not waits.answered
    leads = driver.sync(leader, 1, {leader: b"one", follower: b"two"})
    assert (leads.response.assignment, waits.response.assignment) == (b"one", b"two")
    assert driver.state() == "Stable"


def test_the_answer_names_protocol_and_type() -> None:
    driver, (leader,) = completing(1)
    sync = driver.sync(leader, 1, {leader: b"all"})
    assert (sync.response.protocol_type, sync.response.protocol_name) == ("consumer", "range")


def test_who_syncs_later_gets_its_part_at_once() -> None:
    driver, (leader, follower) = completing()
    driver.sync(leader, 1, {leader: b"one", follower: b"two"})
    assert driver.sync(follower, 1).response.assignment == b"two"


def test_whom_the_leader_forgets_gets_nothing() -> None:
    driver, (leader, follower) = completing()
    driver.sync(leader, 1, {leader: b"one", "stranger": b"two"})
    assert driver.sync(follower, 1).response.assignment == b""


def test_only_the_leaders_assignments_count() -> None:
    driver, (leader, follower) = completing()
    waits = driver.sync(follower, 1, {leader: b"one", follower: b"two"})
    assert not waits.answered and driver.state() == "CompletingRebalance"


def test_a_sync_sent_twice_is_answered_twice_once_each() -> None:
    driver, (leader, follower) = completing()
    early, late = driver.sync(follower, 1), driver.sync(follower, 1)
    assert early.error is ErrorCode.REBALANCE_IN_PROGRESS
    driver.sync(leader, 1, {follower: b"two"})
    assert late.response.assignment == b"two"


def test_while_members_join_a_sync_says_rebalance() -> None:
    driver, (leader, follower) = completing()
    driver.settle([leader, follower], 1)
    driver.join(leader)
    assert driver.sync(follower, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("generation", [0, 2, -1])
def test_another_generation_is_refused(generation: int) -> None:
    driver, (leader,) = completing(1)
    assert driver.sync(leader, generation).error is ErrorCode.ILLEGAL_GENERATION


def test_strangers_are_refused() -> None:
    driver, _ = completing(1)
    assert driver.sync("stranger", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.sync("stranger", 1, group="other").error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.sync("stranger", 1, group="").error is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(
    ("protocol_type", "protocol_name", "error"),
    [
        (None, None, ErrorCode.NONE),
        ("consumer", "range", ErrorCode.NONE),
        ("connect", "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", "sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_protocol_and_type_have_to_be_the_groups(
    protocol_type: str | None, protocol_name: str | None, error: ErrorCode
) -> None:
    driver, (leader,) = completing(1)
    assert driver.sync(leader, 1, protocol_type=protocol_type, protocol_name=protocol_name).error is error


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout() -> None:
    driver, (leader, follower) = completing()
    driver.sync(leader, 1, {leader: b"one", follower: b"two"})
    for _ in range(REBALANCE // 5_000 - 1):
        driver.sleep(5_000)
        driver.heartbeat(leader, 1)
        driver.heartbeat(follower, 1)
    driver.sleep(4_999)
    assert driver.members() == [leader, follower]
    driver.sleep(1)
    assert (driver.members(), driver.state()) == ([leader], "PreparingRebalance")


def test_a_leader_that_never_syncs_is_removed_and_the_others_join_again() -> None:
    driver, (leader, follower) = completing()
    waits = driver.sync(follower, 1)
    for _ in range(REBALANCE // 5_000):
        driver.sleep(5_000)
        driver.heartbeat(leader, 1)
    assert waits.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.join(follower).response.leader == follower


def test_a_leader_that_fails_has_the_others_join_again() -> None:
    driver, (_, follower) = completing()
    waits = driver.sync(follower, 1)
    driver.sleep(SESSION)
    assert waits.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert driver.members() == [follower]


def test_those_answered_have_a_whole_session_from_then() -> None:
    driver, (leader, follower) = completing()
    driver.sync(follower, 1)
    for _ in range(3):
        driver.sleep(9_000)
        driver.heartbeat(leader, 1)
    driver.sync(leader, 1, {})
    driver.sleep(SESSION - 1)
    assert driver.members() == [leader, follower]
    driver.sleep(1)
    assert driver.members() == []
