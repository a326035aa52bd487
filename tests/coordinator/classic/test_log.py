"""What is persisted of classic groups, and what a restart makes of it."""

from __future__ import annotations

from uuid import UUID

import pytest

from kohort.coordinator.classic.states import TRANSITIONS, GroupState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key
from kohort.protocol.stored.group_metadata import GroupMetadataValue
from kohort.protocol.stored.transaction_log import TransactionLogKey
from tests.coordinator.classic.driver import REBALANCE, SESSION, START, Driver, subscription


def test_an_assignment_is_stored_as_kafka_stores_it() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    ((raw_key, raw_value),) = driver.log
    assert raw_value is not None
    kind, key = decode_key(OFFSETS_TOPIC, raw_key)
    value, version = kind.decode_value(raw_value)
    assert isinstance(value, GroupMetadataValue)
    assert (kind.number, key.group, version) == (2, "group", 3)  # type: ignore[attr-defined]
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 1, "range", first)
    assert value.current_state_timestamp == START + 6_000
    assert [(member.member_id, member.assignment) for member in value.members] == [
        (first, first.encode()),
        (second, second.encode()),
    ]
    member = value.members[0]
    assert (member.client_id, member.client_host, member.group_instance_id) == ("client", "10.0.0.1", None)
    assert (member.session_timeout, member.rebalance_timeout) == (SESSION, REBALANCE)
    assert member.subscription[:2] == b"\0\0"


def test_generations_with_assignments_are_counted() -> None:
    driver = Driver()
    leader, _ = driver.stable_group(2)
    assert driver.shard.classic.completed_rebalances == 1
    driver.join(leader)
    assert driver.shard.classic.completed_rebalances == 1
    assert driver.shard.classic.count_by_state() == {GroupState.PREPARING_REBALANCE: 1}


def test_a_group_that_empties_is_stored_without_members() -> None:
    driver = Driver()
    driver.stable_group(1)
    driver.sleep(SESSION)
    raw_key, raw_value = driver.log[-1]
    assert raw_value is not None
    value = decode_key(OFFSETS_TOPIC, raw_key)[0].decode_value(raw_value)[0]
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation, value.protocol_type, value.protocol, value.leader) == (2, "consumer", None, None)
    assert value.members == []


def test_after_a_restart_a_stable_group_goes_on_as_it_was() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.restart()
    assert driver.state() == "Stable"
    assert driver.heartbeat(first, 1) is ErrorCode.NONE
    assert driver.sync(second, 1).response.assignment == second.encode()


def test_after_a_restart_members_have_a_whole_session() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.sleep(SESSION - 1)
    driver.restart()
    driver.sleep(SESSION - 1)
    driver.heartbeat(first, 1)
    assert driver.members() == [first, second]
    driver.sleep(1)
    assert driver.members() == [first]


def test_a_restart_during_a_rebalance_brings_the_last_generation_back() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.join(first)
    driver.restart()
    assert driver.state() == "Stable" and driver.members() == [first, second]
    assert driver.heartbeat(first, 1) is ErrorCode.NONE


def test_a_generation_without_assignments_is_lost_in_a_restart() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.join(first)
    driver.join(second)
    assert driver.state() == "CompletingRebalance"
    driver.restart()
    assert driver.sync(first, 2).error is ErrorCode.ILLEGAL_GENERATION


def test_after_a_restart_members_can_rebalance() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    driver.restart()
    join = driver.join(first)
    driver.join(second)
    assert join.response.generation_id == 2 and join.response.protocol_name == "range"
    driver.settle([first, second], 2)
    assert driver.state() == "Stable"


def test_a_group_too_big_after_a_restart_rebalances() -> None:
    driver = Driver()
    members = driver.stable_group(3)
    driver.settings = type(driver.settings)(group_max_size=2)
    driver.restart()
    assert driver.state() == "PreparingRebalance"
    calls = [driver.join(member) for member in members]
    assert [call.error for call in calls] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_MAX_SIZE_REACHED]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_RECORD, ErrorCode.INVALID_RECORD),
    ],
)
def test_assignments_that_cannot_be_stored_are_not_given_out(error: ErrorCode, answer: ErrorCode) -> None:
    driver = Driver()
    leader, follower = (driver.enter()[0] for _ in range(2))
    driver.sleep(6_000)
    driver.append_error = error
    waits = driver.sync(follower, 1)
    leads = driver.sync(leader, 1, {follower: b"two"})
    assert (waits.error, leads.error) == (answer, answer)
    assert (waits.response.assignment, driver.state()) == (b"", "PreparingRebalance")
    driver.append_error = None
    driver.join(leader)
    driver.join(follower)
    driver.settle([leader, follower], 2)
    assert driver.state() == "Stable"


def test_an_empty_generation_that_cannot_be_stored_is_empty_all_the_same() -> None:
    driver = Driver()
    (member,) = driver.stable_group(1)
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.leave((member, None)) == [ErrorCode.NONE]
    assert driver.state() == "Empty"


def test_who_waits_when_the_shard_goes_has_to_look_for_the_coordinator() -> None:
    driver = Driver()
    first, second = driver.stable_group(2)
    join = driver.join(first)
    entered = driver.enter(group="other")[1]
    driver.perform(driver.shard.unload(driver.now))
    assert join.error is ErrorCode.NOT_COORDINATOR and join.response.member_id == first
    assert entered.error is ErrorCode.NOT_COORDINATOR
    assert driver.heartbeat(second, 1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(driver.wheel) == 0


def test_nothing_piles_up() -> None:
    driver = Driver()
    for _ in range(5):
        members = driver.stable_group(3) if driver.state() == "Dead" else []
        driver.join()
        for member in members:
            driver.leave((member, None))
    driver.sleep(10 * REBALANCE)
    rebalancer = driver.shard.classic.rebalancer
    purgatories = rebalancer.heartbeats, rebalancer.joins, rebalancer.syncs
    assert [purgatory.delayed for purgatory in purgatories] == [0, 0, 0]
    assert len(driver.wheel) == 0


def test_records_of_other_kinds_are_passed_over() -> None:
    driver = Driver()
    driver.shard.replay(TransactionLogKey(transactional_id="t"), None)
    assert driver.shard.list_groups() == []


def test_every_state_but_dead_can_be_left_and_dead_cannot() -> None:
    assert [state for state, following in TRANSITIONS.items() if not following] == [GroupState.DEAD]
    assert all(GroupState.DEAD in following for state, following in TRANSITIONS.items() if state is not GroupState.DEAD)


def test_an_illegal_transition_is_a_bug_and_says_so() -> None:
    driver = Driver()
    driver.stable_group(1)
    group = driver.shard.classic.get("group")
    assert group is not None
    with pytest.raises(RuntimeError, match="'group' can't go from Stable to Empty"):
        group.transition_to(GroupState.EMPTY, driver.now)


def test_topics_of_consumers_are_known_after_a_restart() -> None:
    driver = Driver()
    driver.stable_group(1, protocols=[("range", subscription("a", "b"))])
    driver.restart()
    group = driver.shard.classic.get("group")
    assert group is not None and group.subscribed_topics == {"a", "b"}


def test_an_offset_with_a_time_of_expiry_is_the_same_after_a_restart() -> None:
    driver = Driver()
    partition = OffsetCommitRequest.Topic.Partition(partition_index=0, committed_offset=1, committed_leader_epoch=5)
    topic = OffsetCommitRequest.Topic(name="topic", topic_id=UUID(int=1), partitions=[partition])
    request = OffsetCommitRequest(group_id="group", retention_time_ms=1_000, topics=[topic])
    driver.send(driver.shard.offsets.commit, request, 4)
    before, after = (shard.offsets.committed("group", "topic", 0) for shard in (driver.shard, driver.replayed()))
    assert before is not None and before == after
