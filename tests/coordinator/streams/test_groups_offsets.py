"""What a streams group means for its committed offsets."""

from __future__ import annotations

import pytest

from kohort.coordinator.step import Client, Step
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kohort.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from tests.coordinator.streams.driver import GROUP, App, Driver, joined, reconcile

DAY = 24 * 60 * 60 * 1000
RETENTION = 7 * DAY
NONE, STALE, UNKNOWN = ErrorCode.NONE, ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID


def commit(driver: Driver, member: str, epoch: int, *partitions: int, topic: str = "in", version: int = 9) -> ErrorCode:
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        group_instance_id=None,
        topics=[
            OffsetCommitRequest.Topic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.Topic.Partition(partition_index=partition, committed_offset=7)
                    for partition in partitions or (0,)
                ],
            )
        ],
    )
    answers: list[OffsetCommitResponse] = []
    driver.perform(driver.shard.offsets.commit(request, Client("c", "h", version), driver.now, answers.append))
    (code,) = {partition.error_code for partition in answers[0].topics[0].partitions}
    return ErrorCode(code)


def txn_commit(driver: Driver, member: str, epoch: int) -> ErrorCode:
    request = TxnOffsetCommitRequest(
        transactional_id="t",
        group_id=GROUP,
        producer_id=1,
        producer_epoch=0,
        generation_id_or_member_epoch=epoch,
        member_id=member,
        group_instance_id=None,
        topics=[
            TxnOffsetCommitRequest.Topic(
                name="in",
                partitions=[
                    TxnOffsetCommitRequest.Topic.Partition(
                        partition_index=0, committed_offset=7, committed_metadata=None
                    )
                ],
            )
        ],
    )
    answers: list[TxnOffsetCommitResponse] = []
    driver.perform(driver.shard.offsets.txn_commit(request, Client("c", "h", 5), driver.now, answers.append))
    return ErrorCode(answers[0].topics[0].partitions[0].error_code)


def fetch(driver: Driver, member: str | None, epoch: int) -> ErrorCode:
    group = OffsetFetchRequest.Group(group_id=GROUP, member_id=member, member_epoch=epoch, topics=None)
    return ErrorCode(driver.shard.offsets.fetch(group, require_stable=False).error_code)


def forget(driver: Driver, topic: str) -> list[int]:
    request = OffsetDeleteRequest(
        group_id=GROUP,
        topics=[
            OffsetDeleteRequest.Topic(name=topic, partitions=[OffsetDeleteRequest.Topic.Partition(partition_index=0)])
        ],
    )
    answers: list[OffsetDeleteResponse] = []
    driver.perform(driver.shard.offsets.delete(request, answers.append))
    return [answers[0].error_code, *(each.error_code for topic in answers[0].topics for each in topic.partitions)]


def test_a_member_commits_on_its_epoch() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    assert commit(driver, "m1", app.epoch) is NONE
    assert commit(driver, "m1", app.epoch + 1) is STALE
    assert commit(driver, "stranger", app.epoch) is UNKNOWN


def test_a_commit_that_was_on_its_way_when_the_epoch_rose_counts_for_what_the_member_kept() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    kept, old = [int(name[2:]) for name in first.have()], first.epoch
    second.leave()
    reconcile(first)
    gained = next(n for n in range(4) if n not in kept)
    assert commit(driver, "m1", old, *kept) is NONE
    assert commit(driver, "m1", old, gained) is STALE
    assert commit(driver, "m1", old, *kept, gained) is STALE


def test_a_commit_for_what_is_being_given_up_counts_still() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    App(driver, "m2").join()
    first.beat()
    assert commit(driver, "m1", first.epoch, 0, 1, 2, 3) is NONE


def test_a_commit_of_an_old_epoch_for_a_topic_that_nobody_reads_is_refused() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    second.leave()
    old = first.epoch
    reconcile(first)
    assert commit(driver, "m1", old, 0, topic="elsewhere") is STALE


def test_a_commit_is_no_heartbeat() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    driver.sleep(44_999)
    commit(driver, "m1", app.epoch)
    driver.sleep(1)
    assert driver.state() == "Empty"


def test_versions_without_member_epochs_are_refused() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    assert commit(driver, "m1", app.epoch, version=8) is ErrorCode.UNSUPPORTED_VERSION


def test_tools_commit_for_a_group_without_members() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    assert commit(driver, "", -1) is UNKNOWN
    app.leave()
    assert commit(driver, "", -1) is NONE


def test_transactions_are_checked_like_commits() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    assert txn_commit(driver, "m1", app.epoch) is NONE
    assert txn_commit(driver, "", -1) is NONE
    # The API has no word for an old member epoch.
    assert txn_commit(driver, "m1", app.epoch + 1) is ErrorCode.ILLEGAL_GENERATION
    assert txn_commit(driver, "stranger", app.epoch) is UNKNOWN


def test_a_member_fetches_on_its_epoch() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    assert fetch(driver, "m1", app.epoch) is NONE
    assert fetch(driver, "m1", app.epoch - 1) is STALE
    assert fetch(driver, "stranger", app.epoch) is UNKNOWN
    assert fetch(driver, None, -1) is NONE


@pytest.mark.parametrize(("left", "code"), [(False, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC), (True, NONE)])
def test_offsets_of_what_members_read_are_not_deleted(left: bool, code: ErrorCode) -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    commit(driver, "m1", app.epoch)
    if left:
        app.leave()
    assert forget(driver, "in") == [NONE, code]
    assert forget(driver, "other") == [NONE, NONE]


def test_offsets_are_kept_for_a_while_after_the_last_member_left() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    commit(driver, "m1", app.epoch)
    for _ in range(10):
        driver.sleep(30_000)
        app.beat()
    app.leave()
    since = driver.now
    driver.sleep(RETENTION - 1)
    driver.perform(driver.shard.offsets.expire(driver.now))
    assert driver.shard.offsets.committed(GROUP, "in", 0) is not None
    driver.sleep(1)
    assert driver.now == since + RETENTION
    driver.perform(driver.shard.offsets.expire(driver.now))
    assert driver.shard.offsets.committed(GROUP, "in", 0) is None
    assert driver.shard.streams.get(GROUP) is None


def test_a_group_with_members_keeps_the_offsets_of_what_it_reads() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    commit(driver, "m1", app.epoch)
    driver.perform(driver.shard.offsets.expire(driver.now + 10 * RETENTION))
    assert driver.shard.offsets.committed(GROUP, "in", 0) is not None


def test_committed_offsets_survive_a_change_of_type_and_a_restart() -> None:
    driver = Driver()
    commit(driver, "", -1)
    assert [group.group_type for group in driver.shard.list_groups()] == ["classic"]
    (app,) = joined(driver, ["m1"])
    assert [group.group_type for group in driver.shard.list_groups()] == ["streams"]
    app.beat()
    driver.restart()
    assert [group.group_type for group in driver.shard.list_groups()] == ["streams"]
    assert driver.shard.offsets.committed(GROUP, "in", 0) is not None


def test_offsets_that_were_stored_before_the_group_do_not_make_it_another() -> None:
    """Compaction leaves records in the order in which they were last written, and drops old tombstones."""
    driver = Driver()
    commit(driver, "", -1)
    joined(driver, ["m1"])
    driver.log = [entry for entry in driver.log if entry[1] is not None]
    driver.restart()
    assert [group.group_type for group in driver.shard.list_groups()] == ["streams"]


def test_offsets_of_a_group_that_gave_way_are_somebodys_still() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    commit(driver, "m1", app.epoch)
    app.leave()
    driver.perform(Step(driver.shard.streams.delete(GROUP)))
    assert [group.group_type for group in driver.shard.list_groups()] == ["classic"]
    driver.perform(driver.shard.offsets.expire(driver.now + 2 * RETENTION))
    assert driver.shard.list_groups() == []
