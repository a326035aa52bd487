from __future__ import annotations

from collections.abc import Iterator

import pytest

from kohort.client.membership.consumer_protocol import decode_assignment, encode_assignment
from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.protocol.errors import ErrorCode
from tests.coordinator.conversion.driver import GROUP, Driver, assert_replayed, parts, snapshot, subscribes, told


def mixed(driver: Driver, *, instance: str | None = None) -> str:
    """A group of `modern` and a classic member, each of which has its half in epoch 3; the latter's id."""
    driver.beat("modern", instance=instance)
    asked = driver.rejoin("")
    classic: str = driver.rejoin(asked.response.member_id).response.member_id
    driver.beat("modern", 2, owned=parts("a", 0, 1, 2))
    driver.rejoin(classic)
    assert driver.assigned(classic, 3) == parts("a", 3, 4, 5)
    return classic


@pytest.fixture
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    assert_replayed(driver)


def test_the_last_member_of_the_consumer_protocol_leaves(driver: Driver) -> None:
    classic = mixed(driver)
    left = driver.beat("modern", -1)
    assert (left.error_code, left.member_epoch) == (ErrorCode.NONE, -1)
    assert (driver.kind(), driver.state()) == ("classic", "PreparingRebalance")
    assert driver.records[-1] == "2" and "3-" in driver.records
    assert driver.heartbeat(classic, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = driver.rejoin(classic)
    assert (joined.response.generation_id, joined.response.leader) == (4, classic)
    group = driver.shard.classic.get(GROUP)
    assert group is not None
    driver.settle([classic], 4)


def test_before_the_rebalance_members_have_what_the_target_gave_them(driver: Driver) -> None:
    classic = mixed(driver)
    driver.beat("modern", -1)
    driver.restart()  # which ends the rebalance
    call = driver.sync(classic, 3)
    assert decode_assignment(call.response.assignment) == parts("a", 3, 4, 5)


def test_the_last_member_of_the_consumer_protocol_is_fenced(driver: Driver) -> None:
    classic = mixed(driver)
    for _ in range(5):
        assert driver.kind() == "consumer"
        driver.sleep(9_000)
        driver.heartbeat(classic, 3)
    assert driver.kind() == "classic"
    assert driver.heartbeat(classic, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.sleep(600_000)  # no timer of the consumer group is left
    assert driver.state() == "Empty"


def test_it_is_removed_by_an_administrator(driver: Driver) -> None:
    classic = mixed(driver)
    assert driver.leave(("modern", None)) == [ErrorCode.NONE]
    assert driver.kind() == "classic" and driver.members() == [classic]


def test_it_leaves_for_a_while_only(driver: Driver) -> None:
    mixed(driver, instance="i")
    driver.beat("modern", -2, instance="i")
    assert driver.kind() == "consumer"


def test_it_is_replaced_by_a_classic_static_member_without_a_rebalance(driver: Driver) -> None:
    classic = mixed(driver, instance="i")
    joined = driver.rejoin("", instance="i")
    assert (joined.error, joined.response.generation_id) == (ErrorCode.NONE, 3)
    assert (driver.kind(), driver.state()) == ("classic", "Stable")
    member = joined.response.member_id
    assert driver.assigned(member, 3, "i") == parts("a", 0, 1, 2)
    assert driver.heartbeat(member, 3, instance="i") is ErrorCode.NONE
    assert driver.heartbeat(classic, 3) is ErrorCode.NONE
    assert driver.members() == [classic, member] or driver.members() == [member, classic]


def test_a_replacement_that_subscribes_to_others_takes_a_rebalance(driver: Driver) -> None:
    classic = mixed(driver, instance="i")
    joined = driver.rejoin("", "a", "b", instance="i")
    assert joined.error is ErrorCode.NONE
    assert (driver.kind(), driver.state()) == ("classic", "PreparingRebalance")
    waiting = [driver.rejoin(joined.response.member_id, "a", "b", instance="i"), driver.rejoin(classic)]
    assert [call.response.generation_id for call in waiting] == [5, 5]


def test_the_only_member_is_replaced(driver: Driver) -> None:
    driver.beat("modern", instance="i")
    joined = driver.rejoin("", instance="i")
    assert driver.assigned(joined.response.member_id, joined.response.generation_id, "i") == parts(
        "a", 0, 1, 2, 3, 4, 5
    )
    assert driver.kind() == "classic"


def test_members_keep_all_protocols_that_they_support(driver: Driver) -> None:
    driver.beat("modern")
    member = driver.rejoin("").response.member_id
    protocols = [("range", b"\x00\x00\x00\x00\x00\x01\x00\x01a\xff\xff\xff\xff")]
    protocols.append(("sticky", protocols[0][1]))
    driver.join(member, protocols=protocols)
    driver.beat("modern", -1)
    group = driver.shard.classic.get(GROUP)
    assert group is not None and list(group.members[member].protocols) == ["range", "sticky"]
    # So another one that knows only the second may join.
    asked = driver.join("", protocols=protocols[1:])
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_group_whose_members_are_all_gone_stays_a_consumer_group(driver: Driver) -> None:
    driver.beat("modern")
    driver.beat("modern", -1)
    assert driver.kind() == "consumer"


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE])
def test_where_the_policy_has_no_downgrades(policy: MigrationPolicy) -> None:
    driver = Driver(policy)
    classic = mixed(driver)
    driver.beat("modern", -1)
    assert driver.kind() == "consumer"
    # With nobody of the consumer protocol left, classic members bring the target up to date.
    assert driver.heartbeat(classic, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = driver.rejoin(classic, owned=parts("a", 3, 4, 5))
    assert driver.assigned(classic, joined.response.generation_id) == parts("a", 0, 1, 2, 3, 4, 5)


def test_a_group_larger_than_a_classic_one_may_be(driver: Driver) -> None:
    driver = Driver(group_max_size=1)
    mixed(driver)
    other = driver.rejoin("").response.member_id
    driver.rejoin(other)
    driver.beat("modern", -1)
    assert driver.kind() == "consumer"


def test_a_failed_append_changes_nothing(driver: Driver) -> None:
    classic = mixed(driver, instance="i")
    before = snapshot(driver.shard)
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.beat("modern", -1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.rejoin("", instance="i").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert snapshot(driver.shard) == before
    assert driver.heartbeat(classic, 3) is ErrorCode.NONE
    assert driver.beat("modern", 3).error_code == ErrorCode.NONE


def test_there_and_back(driver: Driver) -> None:
    classic = mixed(driver)
    driver.beat("modern", -1)
    driver.rejoin(classic)
    driver.sync(classic, 4, {classic: encode_assignment(parts("a", 0, 1, 2, 3, 4, 5))})
    driver.beat("again")
    assert driver.kind() == "consumer" and driver.held().keys() == {classic, "again"}


def test_what_a_member_has_yet_to_give_up_is_nobody_elses_after_there_and_back(driver: Driver) -> None:
    (classic,) = driver.classic_group(parts("a", 0, 1, 2, 3, 4, 5))
    driver.beat("first")
    assert driver.kind() == "consumer"
    driver.beat("first", -1)
    assert driver.state() == "PreparingRebalance"
    assert told(driver.beat("second")) == frozenset()
    assert driver.held()[classic] == parts("a", 0, 1, 2, 3, 4, 5)


def test_a_subscription_that_can_not_be_read_keeps_nobody_from_leaving(driver: Driver) -> None:
    """Only a member's first subscription was ever read; the group's protocol may be another one of it."""
    driver.beat("modern")
    for protocols in ([("y", subscribes("a")), ("x", subscribes("a"))], [("x", subscribes("a")), ("y", b"")]):
        asked = driver.join("", protocols=protocols)
        driver.join(asked.response.member_id, protocols=protocols)
    driver.sleep(9_000)
    assert driver.beat("modern", -1).error_code == ErrorCode.NONE
    assert driver.kind() == "classic"
