from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kohort.coordinator.conversion.policy import MigrationPolicy
from kohort.protocol.errors import ErrorCode
from tests.coordinator.conversion.driver import GROUP, Driver, assert_replayed, parts, snapshot, subscribes, told


@pytest.fixture
def driver() -> Iterator[Driver]:
    """A consumer group with one member of the consumer protocol, `modern`, that has all partitions in epoch 2."""
    driver = Driver()
    assert told(driver.beat("modern")) == parts("a", 0, 1, 2, 3, 4, 5)
    yield driver
    assert_replayed(driver)


def enter(driver: Driver, *topics: str) -> str:
    """A new classic member of the group; its id."""
    asked = driver.rejoin("", *topics)
    assert asked.error is ErrorCode.MEMBER_ID_REQUIRED
    member: str = asked.response.member_id
    joined = driver.rejoin(member, *topics)
    assert joined.error is ErrorCode.NONE
    driver.sync(member, joined.response.generation_id)
    return member


def test_a_classic_member_joins_and_gets_its_share_when_it_is_free(driver: Driver) -> None:
    classic = enter(driver)
    assert driver.heartbeat(classic, 3) is ErrorCode.NONE  # others still have what it is to get
    kept = told(driver.beat("modern", 2, owned=parts("a", 0, 1, 2, 3, 4, 5)))
    driver.beat("modern", 2, owned=kept)
    assert driver.heartbeat(classic, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = driver.rejoin(classic)
    assert (joined.response.generation_id, joined.response.protocol_name) == (3, "range")
    assert driver.assigned(classic, 3) == parts("a", 0, 1, 2, 3, 4, 5) - kept
    assert driver.heartbeat(classic, 3) is ErrorCode.NONE


def test_joins_that_are_refused(driver: Driver) -> None:
    enter(driver)
    refused = {
        "type": driver.join("x", protocol_type="connect"),
        "no protocol in common": driver.join("x", protocols=[("sticky", subscribes("a"))]),
        "no protocol": driver.join("x", protocols=[]),
        "no subscription": driver.join("x", protocols=[("range", b"\x00")]),
    }
    assert {name: call.error for name, call in refused.items()} == dict.fromkeys(
        refused, ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    assert driver.rejoin("x", session=5).error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert driver.rejoin("x", instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID
    driver.consumer_settings = type(driver.consumer_settings)(max_size=2)
    assert driver.rejoin("x").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_no_classic_member_joins_where_the_policy_is_disabled() -> None:
    driver = Driver(MigrationPolicy.DISABLED)
    driver.beat("modern")
    assert driver.rejoin("x").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_client_that_is_refused_again_and_again_has_one_line(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    def lines() -> list[str]:
        return [line for line in caplog.messages if line.startswith(("join refused", "heartbeat refused"))]

    for _ in range(3):
        driver.join("x", protocol_type="connect")
    assert len(lines()) == 1
    assert lines()[0].startswith("join refused group=group client=client reason=None of the protocols of type")
    for _ in range(3):
        driver.beat("stranger", 7)
    assert len(lines()) == 2
    assert lines()[1].startswith("heartbeat refused group='group' member='stranger' epoch=7 error=UNKNOWN_MEMBER_ID")
    driver.now += 10_000
    driver.join("x", protocol_type="connect")
    driver.beat("stranger", 7)
    assert len(lines()) == 4


def test_a_refusal_has_a_short_line_whatever_names_a_client_sends(
    driver: Driver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    driver.join("x", protocol_type="x" * 32_000)
    driver.beat("y" * 32_000, 7)
    lines = [line for line in caplog.messages if "refused" in line]
    assert len(lines) == 2
    assert max(map(len, lines)) < 1_000


def test_requests_that_are_refused(driver: Driver) -> None:
    classic = enter(driver)
    for member, generation, code in [
        ("modern", 2, ErrorCode.UNKNOWN_MEMBER_ID),
        ("nobody", 3, ErrorCode.UNKNOWN_MEMBER_ID),
        (classic, 2, ErrorCode.ILLEGAL_GENERATION),
        (classic, 4, ErrorCode.ILLEGAL_GENERATION),
    ]:
        assert driver.heartbeat(member, generation) is code
        assert driver.sync(member, generation).error is code
    for asked in ({"protocol_type": "connect"}, {"protocol_name": "sticky"}):
        assert driver.sync(classic, 3, **asked).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[arg-type]


def test_sync_with_an_old_epoch_makes_the_member_join_again(driver: Driver) -> None:
    classic = enter(driver)
    driver.beat("modern2")
    assert driver.sync(classic, 3).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_leaving_frees_what_a_member_has(driver: Driver) -> None:
    classic = enter(driver)
    assert driver.leave((classic, None), ("nobody", None)) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert driver.held().keys() == {"modern"}
    assert driver.beat("modern", 2).member_epoch == 4


def test_an_administrator_removes_members_of_both_protocols(driver: Driver) -> None:
    static = driver.rejoin("", instance="i")
    assert driver.leave(("", "i"), ("", "other"), ("modern", None)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]
    assert static.response.member_id.startswith("i-") and not driver.held()
    assert driver.kind() == "consumer"


def test_a_static_classic_member_is_back_under_a_new_id(driver: Driver) -> None:
    first = driver.rejoin("", instance="i").response.member_id
    driver.beat("modern", 2, owned=parts("a", 0, 1, 2))
    owned = driver.assigned(driver.rejoin(first, instance="i").response.member_id, 3, "i")
    joined = driver.rejoin("", instance="i")
    second = joined.response.member_id
    assert second != first and joined.response.generation_id == 3
    assert driver.assigned(second, 3, "i") == owned == parts("a", 3, 4, 5)
    assert driver.heartbeat(first, 3, instance="i") is ErrorCode.FENCED_INSTANCE_ID
    assert driver.rejoin(first, instance="i").error is ErrorCode.FENCED_INSTANCE_ID
    assert driver.shard.consumer.get(GROUP).epoch == 3  # type: ignore[union-attr]


def test_a_member_that_does_not_join_again_is_removed(driver: Driver) -> None:
    classic = enter(driver)
    driver.beat("modern2")
    assert driver.heartbeat(classic, 3) is ErrorCode.REBALANCE_IN_PROGRESS
    driver.never_expire("modern")
    for _ in range(7):  # its session goes on; its rebalance timeout is 60 s
        assert classic in driver.held()
        driver.sleep(9_000)
        driver.heartbeat(classic, 3)
    assert classic not in driver.held()


def test_a_member_that_does_not_sync_is_removed(driver: Driver) -> None:
    classic = enter(driver)
    driver.rejoin(classic)
    driver.never_expire("modern")
    for _ in range(7):
        assert classic in driver.held()
        driver.sleep(9_000)
        driver.heartbeat(classic, 3)
    assert classic not in driver.held()


def test_one_that_is_in_time_stays(driver: Driver) -> None:
    classic = enter(driver)
    generation = 3
    driver.never_expire("modern")
    for number in range(12):
        driver.sleep(9_000)
        if number == 5:
            generation = driver.rejoin(classic).response.generation_id
            driver.sync(classic, generation)
        assert driver.heartbeat(classic, generation) is not ErrorCode.UNKNOWN_MEMBER_ID
    assert classic in driver.held()
    driver.sleep(11_000)
    assert classic not in driver.held()


def test_offsets_are_committed_with_the_member_epoch_as_generation(driver: Driver) -> None:
    classic = enter(driver)
    assert driver.commit(classic, 3, version=8) is ErrorCode.NONE
    assert driver.commit(classic, 4, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert driver.commit(classic, 2, version=8) is ErrorCode.ILLEGAL_GENERATION
    assert driver.commit("modern", 1) is ErrorCode.STALE_MEMBER_EPOCH


def test_a_failed_append_changes_nothing(driver: Driver) -> None:
    classic = enter(driver)
    before = snapshot(driver.shard)
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.rejoin("other").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.rejoin(classic, "a", "b").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert snapshot(driver.shard) == before
    assert driver.heartbeat(classic, 3) is ErrorCode.NONE


def test_after_a_restart_sessions_begin_anew(driver: Driver) -> None:
    classic = enter(driver)
    driver.restart()
    driver.sleep(9_999)
    assert driver.held().keys() == {"modern", classic}
    driver.sleep(1)
    assert driver.held().keys() == {"modern"}


def test_both_descriptions(driver: Driver) -> None:
    classic = enter(driver)
    described = driver.shard.consumer.describe(GROUP)
    assert {member.member_id: member.member_type for member in described.members} == {"modern": 1, classic: 0}
    assert driver.shard.describe_group(GROUP, 6).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_nobody_takes_the_place_of_a_static_member_whose_instance_has_an_empty_name(driver: Driver) -> None:
    driver.beat("modern", instance="one")
    static: str = driver.rejoin("", instance="").response.member_id
    driver.beat("dynamic")
    assert {"modern", static, "dynamic"} == driver.held().keys()
    driver.rejoin(driver.rejoin("").response.member_id)
    assert driver.kind() == "consumer" and len(driver.held()) == 4


class Unread(dict[str, Any]):
    """Members that can't be gone through."""

    def values(self) -> Any:
        raise AssertionError("one request looks at all members")

    items = values


def test_a_join_looks_at_no_other_member(driver: Driver) -> None:
    """Otherwise a rebalance of thousands, each of which joins again, would take the square of that."""
    classic = enter(driver)
    group = driver.shard.consumer.get(GROUP)
    assert group is not None and group.moving
    members, group.members = group.members, Unread(group.members)
    assert driver.rejoin(classic).error is ErrorCode.NONE
    group.members = members
