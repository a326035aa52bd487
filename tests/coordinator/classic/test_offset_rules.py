"""What the state of a classic group means for its offsets."""

from __future__ import annotations

import pytest

from kohort.coordinator.classic import ClassicOffsetRules
from kohort.coordinator.offsets import EACH_COMMIT
from kohort.protocol.errors import ErrorCode
from tests.coordinator.classic.driver import SESSION, START, Driver, subscription


def rules(driver: Driver) -> ClassicOffsetRules:
    return ClassicOffsetRules(driver.shard.classic)


def validate(
    driver: Driver,
    member: str,
    generation: int,
    instance: str | None = None,
    *,
    transactional: bool = False,
    version: int = 9,
) -> ErrorCode:
    return rules(driver).validate_commit(
        "group", member, generation, instance, (), transactional=transactional, version=version, now=driver.now
    )


def test_a_member_commits_in_its_generation() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    assert driver.commit(member, 1) is ErrorCode.NONE
    assert driver.commit(member, 0) is ErrorCode.ILLEGAL_GENERATION
    assert driver.commit("stranger", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_commit_is_a_sign_of_life() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    for _ in range(5):
        driver.sleep(SESSION - 1)
        assert driver.commit(member, 1) is ErrorCode.NONE


def test_members_commit_while_others_join() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.join(first)
    assert driver.commit(second, 1) is ErrorCode.NONE


def test_members_cannot_commit_before_they_have_their_assignment() -> None:
    driver = Driver()
    member, _ = driver.enter()
    driver.sleep(3_000)
    assert driver.commit(member, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert validate(driver, member, 1, transactional=True) is ErrorCode.NONE


def test_a_commit_to_nowhere_makes_a_simple_group() -> None:
    driver = Driver()
    assert driver.commit("", -1) is ErrorCode.NONE
    assert (driver.state(), driver.shard.describe_group("group", 6).protocol_type) == ("Empty", "")
    assert driver.replayed().describe_group("group", 6).group_state == "Empty"


def test_a_commit_of_a_generation_to_nowhere_is_refused_in_the_words_of_its_version() -> None:
    driver = Driver()
    assert driver.commit("member", 1, version=9) is ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.commit("member", 1, version=8) is ErrorCode.ILLEGAL_GENERATION
    for version, code in ((5, ErrorCode.ILLEGAL_GENERATION), (6, ErrorCode.GROUP_ID_NOT_FOUND)):
        assert validate(driver, "member", 1, transactional=True, version=version) is code


def test_an_empty_group_takes_commits_without_a_generation_only() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.leave((member, None))
    assert driver.commit("", -1) is ErrorCode.NONE
    assert driver.commit(member, 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_transactions_of_producers_that_are_no_members_are_fine() -> None:
    driver = Driver()
    driver.stable_group(1)
    assert validate(driver, "", -1, transactional=True) is ErrorCode.NONE
    assert validate(driver, "stranger", 1, transactional=True) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_fenced_static_member_cannot_commit() -> None:
    driver = Driver()
    old = driver.join(instance="a")
    driver.sleep(3_000)
    driver.settle([old.response.member_id], 1)
    driver.join(instance="a")
    assert validate(driver, old.response.member_id, 1, "a") is ErrorCode.FENCED_INSTANCE_ID


def test_what_consumers_read_is_known_from_what_they_said_in_any_version() -> None:
    driver = Driver()
    newer = b"\0\3" + subscription("b")[2:] + b"whatever comes after"
    driver.stable_group(1, protocols=[("range", newer)])
    assert rules(driver).is_subscribed("group", "b")
    assert not rules(driver).is_subscribed("group", "a")
    assert rules(driver).validate_delete("group") is ErrorCode.NONE


def test_consumers_that_say_nothing_readable_may_read_anything() -> None:
    driver = Driver()
    driver.stable_group(1, protocols=[("range", b"?")])
    assert rules(driver).is_subscribed("group", "a")


def test_other_members_read_nothing_but_keep_their_offsets() -> None:
    driver = Driver()
    driver.stable_group(1, protocol_type="connect")
    assert not rules(driver).is_subscribed("group", "a")
    assert rules(driver).validate_delete("group") is ErrorCode.NON_EMPTY_GROUP


def test_an_unknown_group() -> None:
    unknown = rules(Driver())
    assert unknown.validate_delete("group") is ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.validate_fetch("group", None, -1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert unknown.retention_base("group") is None
    assert unknown.delete_if_empty("group") == []
    assert not unknown.is_subscribed("group", "a")


def test_the_retention_of_an_empty_group_begins_when_it_became_empty() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.sleep(5_000)
    driver.leave((member, None))
    assert rules(driver).retention_base("group") == START + 11_000
    driver.restart()
    assert rules(driver).retention_base("group") == START + 11_000


@pytest.mark.parametrize(("metadata", "base"), [(subscription("a"), EACH_COMMIT), (b"?", None)])
def test_the_retention_of_a_stable_group_depends_on_what_is_known_of_it(metadata: bytes, base: int | None) -> None:
    driver = Driver()
    leader, _ = driver.stable_group(2, protocols=[("range", metadata)])
    assert rules(driver).retention_base("group") == base
    driver.join(leader)
    assert rules(driver).retention_base("group") is None


def test_the_retention_of_a_simple_groups_offsets_begins_with_each() -> None:
    driver = Driver()
    driver.commit("", -1)
    assert rules(driver).retention_base("group") == EACH_COMMIT


def test_a_group_that_someone_is_about_to_join_is_not_deleted() -> None:
    driver = Driver()
    driver.commit("", -1)
    driver.join()
    assert rules(driver).delete_if_empty("group") == []
    driver.sleep(SESSION)
    assert len(rules(driver).delete_if_empty("group")) == 1
