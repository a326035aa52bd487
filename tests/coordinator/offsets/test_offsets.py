"""Committed offsets, rule by rule."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.schema import NO_UUID
from kohort.protocol.stored.group_metadata import GroupMetadataKey
from kohort.protocol.stored.offset_commit import LegacyOffsetCommitKey, LegacyOffsetCommitValue, OffsetCommitKey
from tests.coordinator.offsets.fakes import DAY, FakeGroups, Log, Settings, fetch_all

FOUND, NOTHING = 0, (0, -1)
UNSTABLE = (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
ID, OTHER_ID = UUID(int=7), UUID(int=8)


@pytest.fixture
def log() -> Log:
    return Log()


def test_a_commit_is_fetched(log: Log) -> None:
    assert log.commit("g", "t", 1, 42) == 0
    assert log.fetch("g", "t", 1) == (FOUND, 42)


def test_the_later_commit_counts(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.commit("g", "t", 1, 17)
    assert log.fetch("g", "t", 1) == (FOUND, 17)
    assert len(log.offsets) == 1


def test_what_was_not_committed_is_minus_one(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    assert log.fetch("g", "t", 2) == log.fetch("g", "other", 1) == log.fetch("h", "t", 1) == NOTHING


def test_leader_epoch_note_and_time_are_kept(log: Log) -> None:
    log.commit("g", "t", 1, 42, now=123, note="note", leader_epoch=5)
    committed = log.restarted().committed("g", "t", 1)
    assert committed is not None
    assert (committed.leader_epoch, committed.metadata, committed.committed_at) == (5, "note", 123)


def test_a_null_note_is_stored_as_an_empty_one(log: Log) -> None:
    assert log.commit("g", "t", 1, 42, note=None) == 0
    committed = log.offsets.committed("g", "t", 1)
    assert committed is not None
    assert committed.metadata == ""


def test_a_note_of_the_longest_length_is_stored(log: Log) -> None:
    assert log.commit("g", "t", 1, 42, note="x" * log.settings.offset_metadata_max_bytes) == 0


def test_a_longer_note_fails_its_partition(log: Log) -> None:
    note = "x" * (log.settings.offset_metadata_max_bytes + 1)
    assert log.commit("g", "t", 1, 42, note=note) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert log.txn_commit("g", "t", 1, 42, producer=1, note=note) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert log.entries == []


def test_the_groups_are_asked_about_the_member(log: Log) -> None:
    log.commit("g", "t", 1, 42, now=9, version=8, member_id="m", generation_id_or_member_epoch=3, group_instance_id="i")
    assert log.groups.asked == [
        {
            "group": "g", "member": "m", "generation": 3, "instance": "i", "partitions": [("t", 1)],
            "transactional": False, "version": 8, "now": 9,
        }
    ]  # fmt: skip


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH])
def test_a_refused_member_commits_nothing(log: Log, code: ErrorCode) -> None:
    log.groups.error = code
    assert log.commit("g", "t", 1, 42) == code
    assert log.entries == []


def test_a_transaction_has_no_word_for_a_stale_epoch(log: Log) -> None:
    log.groups.error = ErrorCode.STALE_MEMBER_EPOCH
    assert log.txn_commit("g", "t", 1, 42, producer=1) == ErrorCode.ILLEGAL_GENERATION
    assert log.entries == []


def test_an_offset_makes_its_group(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    assert log.groups.known == {"g"}


def test_a_failed_append_is_every_partitions_error(log: Log) -> None:
    log.groups.known.add("g")
    log.commit("g", "t", 1, 42)
    log.fails = ErrorCode.NOT_COORDINATOR
    assert log.commit("g", "t", 1, 43) == ErrorCode.NOT_COORDINATOR
    assert log.txn_commit("g", "t", 1, 43, producer=1) == ErrorCode.NOT_COORDINATOR
    assert log.delete("g", "t", 1) == [ErrorCode.NOT_COORDINATOR]
    assert log.fetch("g", "t", 1, stable=True) == (FOUND, 42)


def test_fetching_all(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.commit("g", "t", 0, 41)
    log.commit("g", "a", 0, 40)
    assert list(fetch_all(log.offsets, "g").items()) == [(("a", 0), (0, 40)), (("t", 0), (0, 41)), (("t", 1), (0, 42))]
    assert fetch_all(log.offsets, "h") == {}


def test_fetching_is_refused_for_the_whole_group(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.groups.error = ErrorCode.STALE_MEMBER_EPOCH
    response = log.offsets.fetch(OffsetFetchRequest.Group(group_id="g", topics=None), require_stable=False)
    assert (response.error_code, response.topics) == (ErrorCode.STALE_MEMBER_EPOCH, [])


@pytest.mark.parametrize(
    ("committed", "asked", "found"),
    [(ID, ID, 42), (ID, NO_UUID, 42), (NO_UUID, ID, 42), (ID, OTHER_ID, -1)],
)
def test_an_offset_of_another_topic_of_that_name_does_not_count(
    log: Log, committed: UUID, asked: UUID, found: int
) -> None:
    log.commit("g", "t", 1, 42, topic_id=committed)
    topic = OffsetFetchRequest.Group.Topic(name="t", topic_id=asked, partition_indexes=(1,))
    response = log.offsets.fetch(OffsetFetchRequest.Group(group_id="g", topics=[topic]), require_stable=False)
    assert response.topics[0].topic_id == asked
    assert response.topics[0].partitions[0].committed_offset == found


# Transactions


def test_an_offset_in_a_transaction_waits_for_its_marker(log: Log) -> None:
    assert log.txn_commit("g", "t", 1, 42, producer=7) == 0
    assert log.fetch("g", "t", 1) == NOTHING
    log.marker(7, commit=True)
    assert log.fetch("g", "t", 1, stable=True) == (FOUND, 42)


def test_the_records_of_a_transaction_go_out_in_its_name(log: Log) -> None:
    log.txn_commit("g", "t", 1, 42, producer=7)
    assert [producer for _, producer in log.entries] == [(7, 3)]


def test_an_aborted_offset_vanishes(log: Log) -> None:
    log.commit("g", "t", 1, 40)
    log.txn_commit("g", "t", 1, 42, producer=7)
    log.marker(7, commit=False)
    assert log.fetch("g", "t", 1, stable=True) == (FOUND, 40)


def test_stable_offsets_are_wanted_and_there_are_none(log: Log) -> None:
    log.commit("g", "t", 1, 40)
    log.txn_commit("g", "t", 1, 42, producer=7)
    assert log.fetch("g", "t", 1, stable=False) == (FOUND, 40)
    assert log.fetch("g", "t", 1, stable=True) == UNSTABLE
    assert fetch_all(log.offsets, "g", stable=True) == {("t", 1): UNSTABLE}


def test_another_partition_is_stable_meanwhile(log: Log) -> None:
    log.txn_commit("g", "t", 1, 42, producer=7)
    assert log.fetch("g", "t", 2, stable=True) == NOTHING


def test_a_marker_ends_its_producers_transaction_alone(log: Log) -> None:
    log.txn_commit("g", "t", 1, 42, producer=7)
    log.txn_commit("g", "t", 2, 43, producer=8)
    log.marker(7, commit=True)
    assert log.fetch("g", "t", 2, stable=True) == UNSTABLE


def test_a_later_commit_outside_the_transaction_stays(log: Log) -> None:
    log.txn_commit("g", "t", 1, 42, producer=7)
    log.commit("g", "t", 1, 40)
    log.marker(7, commit=True)
    assert log.fetch("g", "t", 1) == (FOUND, 40)


def test_of_two_transactions_the_later_commit_counts(log: Log) -> None:
    log.txn_commit("g", "t", 1, 42, producer=7)
    log.txn_commit("g", "t", 1, 43, producer=8)
    log.marker(8, commit=True)
    log.marker(7, commit=True)
    assert log.fetch("g", "t", 1) == (FOUND, 43)


def test_a_marker_for_no_transaction_is_nothing(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.marker(7, commit=True)
    assert log.fetch("g", "t", 1) == (FOUND, 42)


def test_a_group_without_a_name_has_no_transaction(log: Log) -> None:
    assert log.txn_commit("", "t", 1, 42, producer=7) == ErrorCode.INVALID_GROUP_ID


# Deletion


def test_deleted_offsets_are_gone(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.commit("g", "t", 2, 43)
    assert log.delete("g", "t", 1) == [0, 0]
    assert fetch_all(log.offsets, "g") == {("t", 2): (FOUND, 43)}


def test_deleting_what_is_not_there_writes_nothing(log: Log) -> None:
    log.groups.known.add("g")
    assert log.delete("g", "t", 1) == [0, 0]
    assert log.entries == []


def test_a_topic_that_is_read_keeps_its_offsets(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.groups.subscribed.add(("g", "t"))
    assert log.delete("g", "t", 1, 2) == [0, *[ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC] * 2]
    assert log.fetch("g", "t", 1) == (FOUND, 42)


def test_an_unknown_group_has_nothing_to_delete(log: Log) -> None:
    assert log.delete("g", "t", 1) == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_a_group_without_a_name_has_nothing_to_delete(log: Log) -> None:
    assert log.delete("", "t", 1) == [ErrorCode.INVALID_GROUP_ID]


def test_deleting_reaches_into_open_transactions(log: Log) -> None:
    log.txn_commit("g", "t", 1, 42, producer=7)
    assert log.delete("g", "t", 1) == [0, 0]
    log.marker(7, commit=True)
    assert log.fetch("g", "t", 1, stable=True) == NOTHING


def test_deleting_a_group_forgets_each_offset_once(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.txn_commit("g", "t", 1, 43, producer=7)
    log.txn_commit("g", "t", 2, 43, producer=7)
    log.commit("h", "t", 1, 42)
    records = log.offsets.delete_group("g")
    assert [record.key for record in records] == [
        OffsetCommitKey(group="g", topic="t", partition=1),
        OffsetCommitKey(group="g", topic="t", partition=2),
    ]
    assert all(record.value is None for record in records)


def test_a_deleted_topic_takes_every_groups_offsets_along(log: Log) -> None:
    log.commit("g", "t", 1, 42)
    log.commit("h", "t", 0, 42)
    log.txn_commit("i", "t", 0, 42, producer=7)
    log.commit("g", "other", 0, 5)
    log.run(log.offsets.delete_topic("t"))
    log.marker(7, commit=True)
    assert fetch_all(log.offsets, "g") == {("other", 0): (FOUND, 5)}
    assert fetch_all(log.offsets, "h") == fetch_all(log.offsets, "i") == {}


# Expiry


@pytest.mark.parametrize(("now", "kept"), [(DAY - 1, True), (DAY, False)])
def test_a_simple_group_keeps_offsets_for_the_retention_after_the_commit(log: Log, now: int, kept: bool) -> None:
    log.commit("g", "t", 1, 42, now=0)
    log.run(log.offsets.expire(now))
    assert (log.fetch("g", "t", 1) != NOTHING) is kept
    assert ("g" in log.groups.known) is kept


def test_an_empty_group_keeps_them_for_the_retention_after_it_became_empty(log: Log) -> None:
    log.commit("g", "t", 1, 42, now=0)
    log.groups.base["g"] = 5 * DAY
    log.run(log.offsets.expire(6 * DAY - 1))
    assert log.fetch("g", "t", 1) == (FOUND, 42)
    log.run(log.offsets.expire(6 * DAY))
    assert log.fetch("g", "t", 1) == NOTHING


def test_a_group_in_a_rebalance_keeps_them(log: Log) -> None:
    log.commit("g", "t", 1, 42, now=0)
    log.groups.base["g"] = None
    assert log.run(log.offsets.expire(100 * DAY)) == []


def test_a_topic_that_is_read_keeps_them(log: Log) -> None:
    log.commit("g", "t", 1, 42, now=0)
    log.commit("g", "left", 1, 42, now=0)
    log.groups.subscribed.add(("g", "t"))
    log.run(log.offsets.expire(DAY))
    assert fetch_all(log.offsets, "g") == {("t", 1): (FOUND, 42)}
    assert "g" in log.groups.known


def test_an_open_transaction_keeps_offset_and_group(log: Log) -> None:
    log.commit("g", "t", 1, 42, now=0)
    log.txn_commit("g", "t", 1, 43, producer=7)
    assert log.run(log.offsets.expire(DAY)) == []


def test_an_offset_of_a_group_that_is_all_in_a_transaction_keeps_the_group(log: Log) -> None:
    log.txn_commit("g", "t", 1, 43, producer=7)
    assert log.run(log.offsets.expire(100 * DAY)) == []


@pytest.mark.parametrize(("now", "kept"), [(1099, True), (1100, False)])
def test_a_commit_may_bring_its_own_retention(log: Log, now: int, kept: bool) -> None:
    log.commit("g", "t", 1, 42, now=1000, version=4, retention_time_ms=100)
    expired = log.restarted().expire(now).records
    assert (not expired) is kept


def test_a_group_with_members_outlives_its_offsets(log: Log) -> None:
    log.commit("g", "t", 1, 42, now=0)
    log.groups.with_members.add("g")
    (record,) = log.run(log.offsets.expire(DAY))
    assert record.key == OffsetCommitKey(group="g", topic="t", partition=1)


def test_a_group_that_never_committed_goes_at_once() -> None:
    log = Log(Settings(), FakeGroups(known={"g"}))
    (record,) = log.run(log.offsets.expire(1))
    assert (record.key, record.value) == (GroupMetadataKey(group="g"), None)


# Replay


def test_records_of_the_oldest_type_are_understood(log: Log) -> None:
    key = LegacyOffsetCommitKey(group="g", topic="t", partition=1)
    log.offsets.replay(key, LegacyOffsetCommitValue(offset=42, metadata="n", commit_timestamp=9))
    committed = log.offsets.committed("g", "t", 1)
    assert committed is not None
    assert (committed.offset, committed.leader_epoch, committed.metadata, committed.committed_at) == (42, -1, "n", 9)
    log.offsets.replay(key, None)
    assert log.fetch("g", "t", 1) == NOTHING


def test_a_time_of_expiry_beyond_all_time_is_never(log: Log) -> None:
    assert log.commit("g", "t", 1, 42, now=DAY, version=4, retention_time_ms=2**63 - 1) == 0
    assert log.run(log.offsets.expire(100 * DAY)) == []


def test_however_many_offsets_expire_a_batch_of_them_is_small(log: Log) -> None:
    for group in ("a", "b"):
        for partition in range(10):
            log.commit(group, "t" * 30_000, partition, 42)
    first, *_ = batches = [log.run(log.offsets.expire(DAY)) for _ in range(4)]
    assert 1 < len(first) < 10
    assert sum(map(len, batches)) == 20 + 2 and not log.groups.known and not log.offsets


def test_a_group_whose_offsets_are_deleted_in_an_open_transaction_is_forgotten(log: Log) -> None:
    log.txn_commit("g", "t", 0, 42, producer=7)
    log.txn_commit("h", "t", 0, 42, producer=7)
    log.delete("g", "t", 0)
    assert [record.key for record in log.run(log.offsets.expire(DAY))] == [GroupMetadataKey(group="g")]
    log.marker(7, commit=True)
    assert log.fetch("g", "t", 0) == NOTHING and log.fetch("h", "t", 0) == (FOUND, 42)
