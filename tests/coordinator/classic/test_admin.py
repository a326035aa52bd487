from __future__ import annotations

import pytest

from kohort.protocol.errors import ErrorCode
from tests.coordinator.classic.driver import Call, Driver


def delete(driver: Driver, *groups: str) -> dict[str, ErrorCode]:
    call = Call()
    driver.perform(driver.shard.delete_groups(groups, call))
    return {result.group_id: ErrorCode(result.error_code) for result in call.response}


def several_groups() -> Driver:
    """One empty, one stable, one of mere offsets."""
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.leave((member, None))
    driver.enter(group="other", session=60_000, protocol_type="connect")
    driver.sleep(3_000)
    driver.commit("", -1, group="offsets")
    return driver


def test_a_stable_group_shows_what_its_members_sent_and_got() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    described = driver.shard.describe_group("group", 6)
    assert (described.group_state, described.protocol_type, described.protocol_data) == ("Stable", "consumer", "range")
    assert [member.member_id for member in described.members] == [first, second]
    member = described.members[0]
    assert (member.client_id, member.client_host) == ("client", "10.0.0.1")
    assert (member.member_metadata[:2], member.member_assignment) == (b"\0\0", first.encode())


def test_a_group_that_prepares_a_rebalance_tells_who_has_joined() -> None:
    """They have what they sent; the others, who are awaited, have nothing."""
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.join(first)
    described = driver.shard.describe_group("group", 6)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    sent = {member.member_id: member.member_metadata[:2] for member in described.members}
    assert sent == {first: b"\0\0", second: b""}
    assert {member.member_assignment for member in described.members} == {b""}


def test_a_group_that_completes_a_rebalance_shows_members_without_their_data() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.join(first)
    driver.join(second)
    described = driver.shard.describe_group("group", 6)
    assert (described.group_state, described.protocol_data) == ("CompletingRebalance", "")
    assert {(member.member_metadata, member.member_assignment) for member in described.members} == {(b"", b"")}


def test_an_unknown_group_is_dead_and_from_version_6_an_error() -> None:
    driver = Driver()
    old, new = (driver.shard.describe_group("group", version) for version in (5, 6))
    assert (old.group_state, old.error_code, old.error_message) == ("Dead", 0, None)
    assert (new.group_state, new.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert new.error_message == "Group group not found."


def test_all_groups_are_listed() -> None:
    listed = several_groups().shard.list_groups()
    assert [(group.group_id, group.group_state, group.protocol_type, group.group_type) for group in listed] == [
        ("group", "Empty", "consumer", "classic"),
        ("other", "CompletingRebalance", "connect", "classic"),
        ("offsets", "Empty", "", "classic"),
    ]


@pytest.mark.parametrize(
    ("states", "types", "groups"),
    [
        (["Empty"], [], ["group", "offsets"]),
        (["EMPTY ", "completingrebalance"], [], ["group", "other", "offsets"]),
        (["Stable"], [], []),
        (["no such state"], [], []),
        ([], ["Classic"], ["group", "other", "offsets"]),
        ([], ["consumer", "share"], []),
        (["Empty"], ["consumer", "classic"], ["group", "offsets"]),
    ],
)
def test_groups_are_listed_by_state_and_type(states: list[str], types: list[str], groups: list[str]) -> None:
    listed = several_groups().shard.list_groups(states, types)
    assert [group.group_id for group in listed] == groups


def test_only_groups_without_members_can_be_deleted() -> None:
    driver = several_groups()
    assert delete(driver, "group", "other", "nowhere", "offsets") == {
        "group": ErrorCode.NONE,
        "other": ErrorCode.NON_EMPTY_GROUP,
        "nowhere": ErrorCode.GROUP_ID_NOT_FOUND,
        "offsets": ErrorCode.NONE,
    }
    assert [group.group_id for group in driver.shard.list_groups()] == ["other"]
    assert driver.shard.offsets.committed("offsets", "topic", 0) is None


def test_deleted_groups_stay_deleted() -> None:
    driver = several_groups()
    delete(driver, "group", "offsets")
    assert driver.replayed().list_groups() == []  # the third never had a generation


def test_a_deletion_that_cannot_be_stored_deletes_nothing() -> None:
    driver = several_groups()
    driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR
    assert delete(driver, "group")["group"] is ErrorCode.NOT_COORDINATOR
    assert driver.state() == "Empty"


def test_a_deleted_groups_pending_members_are_unknown() -> None:
    driver = several_groups()
    pending = driver.join().response.member_id
    delete(driver, "group")
    assert driver.join(pending).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.shard.classic.rebalancer.heartbeats.delayed == 1  # the other group's member
