"""Groups of several kinds in one shard: no two have the same id, and empty classic ones give way."""

from __future__ import annotations

from typing import Any

from kohort.coordinator.step import Client
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from tests.coordinator.consumer.driver import GROUP, Driver, Reader, joined


def join_classic(driver: Driver) -> str:
    answers: list[Any] = []
    protocol = JoinGroupRequest.Protocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id=GROUP, protocol_type="consumer", protocols=[protocol], session_timeout_ms=10_000
    )
    driver.perform(driver.shard.classic.join(request, Client("c", "/h", 3), driver.now, answers.append))
    driver.sleep(10_000)
    return str(answers[0].error_code)


def types(driver: Driver) -> list[tuple[str, str, str]]:
    return [(group.group_id, group.group_type, group.group_state) for group in driver.shard.list_groups()]


def test_a_group_of_offsets_alone_becomes_a_consumer_group() -> None:
    driver = Driver()
    driver.shard.replay(OffsetCommitKey(group=GROUP, topic="in"), OffsetCommitValue(offset=1))
    assert types(driver) == [(GROUP, "classic", "Empty")]
    (reader,) = joined(driver, "a")
    assert types(driver) == [(GROUP, "consumer", "Stable")]
    assert driver.replayed().list_groups() == driver.shard.list_groups()
    reader.leave()
    assert driver.shard.offsets.committed(GROUP, "in", 0) is not None


def test_a_consumer_group_that_is_removed_leaves_its_offsets_if_others_come() -> None:
    driver = Driver()
    (reader,) = joined(driver, "a")
    reader.leave()
    assert join_classic(driver) == "0"
    assert types(driver)[0][1] == "classic"


def test_a_consumer_group_with_members_does_not_give_way() -> None:
    driver = Driver()
    joined(driver, "a")
    assert join_classic(driver) == "23"  # INCONSISTENT_GROUP_PROTOCOL


def test_streams_and_consumer_groups_do_not_give_way_to_each_other() -> None:
    driver = Driver()
    (reader,) = joined(driver, "a")
    reader.leave()
    answers: list[Any] = []
    request = StreamsGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="s",
        rebalance_timeout_ms=1_000,
        topology=StreamsGroupHeartbeatRequest.Topology(),
        process_id="p",
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    driver.perform(driver.shard.streams.heartbeat(request, Client(), driver.now, answers.append))
    assert answers[0].response.error_code == 69  # GROUP_ID_NOT_FOUND
    assert Reader(driver, "b").join().error == "NONE"


def test_lists_and_filters() -> None:
    driver = Driver()
    joined(driver, "a")
    shard = driver.shard
    assert [group.protocol_type for group in shard.list_groups(types=["Consumer"])] == ["consumer"]
    assert shard.list_groups(types=["classic", "streams"]) == []
    assert [group.group_id for group in shard.list_groups(["stable"])] == [GROUP]
    assert shard.list_groups(["Empty"]) == []


def test_classic_groups_are_listed_after_the_others() -> None:
    driver = Driver()
    driver.shard.replay(OffsetCommitKey(group="another", topic="in"), OffsetCommitValue(offset=1))
    joined(driver, "a")
    assert [group.group_type for group in driver.shard.list_groups()] == ["consumer", "classic"]


def test_describing() -> None:
    driver = Driver()
    first, second = joined(driver, "a", "b", instance=None)
    described = driver.shard.consumer.describe(GROUP)
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 3, 3)
    member = described.members[1]
    assert (member.member_id, member.member_epoch, member.subscribed_topic_names) == ("a", 3, ("in",))
    assert (member.client_id, member.client_host, member.member_type) == ("client", "/10.0.0.1", 1)
    assert member.assignment == member.target_assignment
    assert [topic.topic_name for topic in member.assignment.topic_partitions] == ["in"]
    second.leave()
    Reader(driver, "c").join()
    first.obeys = False
    first.beat()
    driver.topic("in", None)
    assert driver.shard.consumer.describe(GROUP).members[0].assignment.topic_partitions == []
    assert driver.shard.consumer.describe("unheard").error_code == 69
