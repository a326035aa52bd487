"""Offsets of consumer groups: committed on the member's epoch, or on an older one for what it has had since then."""

from __future__ import annotations

from typing import Any

import pytest

from kohort.coordinator.consumer.offset_rules import ConsumerOffsetRules
from kohort.coordinator.offsets import EACH_COMMIT
from kohort.protocol.errors import ErrorCode
from tests.coordinator.consumer.driver import GROUP, Driver, Reader, joined, reconcile


def commit(driver: Driver, member: str, epoch: int, *partitions: int, **options: Any) -> str:
    rules = driver.shard.offset_rules(GROUP)
    given = {"transactional": False, "version": 9} | options
    asked = [("in", partition) for partition in partitions]
    return rules.validate_commit(GROUP, member, epoch, None, asked, now=driver.now, **given).name


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_on_the_members_epoch(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    assert commit(driver, "a", reader.epoch, 0) == "NONE"
    assert commit(driver, "a", reader.epoch + 1, 0) == "STALE_MEMBER_EPOCH"
    assert commit(driver, "z", reader.epoch, 0) == "UNKNOWN_MEMBER_ID"
    assert commit(driver, "a", reader.epoch, 0, version=8) == "UNSUPPORTED_VERSION"


def test_on_an_older_epoch_for_what_the_member_has_had_since_then(driver: Driver) -> None:
    first, second = joined(driver, "a", "b")
    before, had = first.epoch, {int(partition[3:]) for partition in first.owned}
    second.leave()
    first.beat()
    gained = {0, 1, 2, 3} - had
    assert first.epoch > before
    assert commit(driver, "a", before, *had) == "NONE"
    assert commit(driver, "a", before, *gained) == "STALE_MEMBER_EPOCH"
    assert commit(driver, "a", before, 99) == "STALE_MEMBER_EPOCH"


def test_an_empty_group_takes_anybodys(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    assert commit(driver, "", -1, 0) == "UNKNOWN_MEMBER_ID"
    reader.leave()
    assert commit(driver, "", -1, 0) == "NONE"


def test_a_transaction_may_leave_the_member_out(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    assert commit(driver, "", -1, 0, transactional=True, version=5) == "NONE"
    assert commit(driver, "a", reader.epoch, 0, transactional=True, version=5) == "NONE"


def test_fetching(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    rules = driver.shard.offset_rules(GROUP)
    assert rules.validate_fetch(GROUP, None, -1) is ErrorCode.NONE
    assert rules.validate_fetch(GROUP, "a", reader.epoch) is ErrorCode.NONE
    assert rules.validate_fetch(GROUP, "a", reader.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert rules.validate_fetch(GROUP, "z", 1) is ErrorCode.UNKNOWN_MEMBER_ID


def test_topics_that_members_read_keep_their_offsets() -> None:
    driver = Driver({"in": 1, "orders": 1, "other": 1})
    first, second = Reader(driver, "a", "in").join(), Reader(driver, "b", regex="ord.*").join()
    driver.resolve()
    reconcile(driver, first, second)
    rules = driver.shard.offset_rules(GROUP)
    assert isinstance(rules, ConsumerOffsetRules)
    assert [rules.is_subscribed(GROUP, topic) for topic in ("in", "orders", "other")] == [True, True, False]
    assert rules.validate_delete(GROUP) is ErrorCode.NONE
    assert rules.retention_base(GROUP) == EACH_COMMIT
    assert rules.delete_if_empty(GROUP) == []
    first.leave()
    second.leave()
    assert not rules.is_subscribed(GROUP, "in")
    assert rules.delete_if_empty(GROUP)
