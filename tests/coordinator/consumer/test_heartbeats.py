"""Members of consumer groups that join, stay, move and leave, rule by rule (KIP-848)."""

from __future__ import annotations

import logging
from uuid import UUID

import pytest

from kohort.coordinator.consumer.draft import Draft
from kohort.coordinator.consumer.member import ConsumerMetadata
from kohort.coordinator.consumer.settings import ConsumerSettings
from kohort.coordinator.modern.current_assignment import CurrentAssignment
from kohort.coordinator.modern.metadata_hash import metadata_hash
from kohort.coordinator.step import Client
from kohort.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.coordinator.consumer.driver import CLIENT, GROUP, Driver, Owned, Reader, joined, reconcile


@pytest.fixture
def driver() -> Driver:
    return Driver()


def test_the_first_member_gets_everything_at_once(driver: Driver) -> None:
    reader = Reader(driver, "a").join()
    assert (reader.epoch, reader.owned) == (2, ["in-0", "in-1", "in-2", "in-3"])
    assert driver.kinds == ["5", "3", "7", "6", "8"]
    assert driver.state() == "Stable"


def test_a_heartbeat_that_changes_nothing_says_nothing_new_and_writes_nothing(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    for _ in range(3):
        reader.send()
        assert (reader.response.assignment, driver.kinds) == (None, [])


def test_a_second_member_waits_until_the_first_has_revoked(driver: Driver) -> None:
    (first,) = joined(driver, "a")
    second = Reader(driver, "b").join()
    assert (second.epoch, second.owned) == (3, [])
    first.obeys = False
    first.beat()
    assert first.epoch == 2, "it stays on its epoch until it has revoked"
    assert second.beat().owned == []
    first.obeys, first.owned = True, first.owned[:2]
    assert first.beat().epoch == 3
    assert len(second.beat().owned) == 2
    assert not set(first.owned) & set(second.owned)
    assert driver.state() == "Stable"


def test_partitions_of_a_member_that_left_go_to_others(driver: Driver) -> None:
    first, second = joined(driver, "a", "b")
    assert first.leave().epoch == -1
    assert driver.state() == "Assigning"
    assert len(second.beat().owned) == 4
    second.leave()
    assert driver.state() == "Empty"


def test_log_lines_say_who_comes_and_goes_and_from_where(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reader = Reader(driver, "a").join()
    assert "member joins group=readers member=a instance=None client=client host=10.0.0.1" in caplog.messages
    assert any(line.startswith("epoch bumped") and "because=member a joined" in line for line in caplog.messages)
    reader.leave()
    gone = "member removed group=readers member=a client=client host=10.0.0.1 because=it left"
    assert gone in caplog.messages


def test_members_with_an_empty_subscription_are_members_all_the_same(driver: Driver) -> None:
    reader = Reader(driver, "a").join(subscribed_topic_names=())
    assert (reader.error, reader.epoch, reader.owned, driver.state()) == ("NONE", 1, [], "Stable")


def test_unsubscribing_takes_partitions_away(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    reader.beat(subscribed_topic_names=())
    reader.beat()
    assert (reader.owned, driver.state()) == ([], "Stable")


def test_a_member_gets_no_partitions_of_a_topic_it_left_though_the_next_target_has_to_wait() -> None:
    driver = Driver({"in": 2, "other": 2}, ConsumerSettings(assignment_interval_ms=20_000))
    reader = Reader(driver, "a", "in").join()
    reader.beat(subscribed_topic_names=("other",))
    assert reader.owned == []
    driver.sleep(20_000 - 1)
    assert reader.beat().owned == []
    driver.sleep(1)
    assert reader.beat().owned == ["other-0", "other-1"]


def test_a_target_is_made_once_in_an_interval() -> None:
    driver = Driver(settings=ConsumerSettings(assignment_interval_ms=1_000))
    first = Reader(driver, "a").join()
    second, third = Reader(driver, "b").join(), Reader(driver, "c").join()
    assert (driver.group.epoch, driver.group.assignment_epoch, driver.state()) == (4, 2, "Assigning")
    driver.sleep(1_000)
    first.beat()
    assert driver.group.assignment_epoch == 4
    reconcile(driver, first, second, third)
    assert sorted(map(len, (first.owned, second.owned, third.owned))) == [1, 1, 2]


def test_a_change_of_topics_waits_too_though_no_timer_has_told_the_time() -> None:
    driver = Driver({"in": 2}, ConsumerSettings(assignment_interval_ms=1_000))
    driver.now += 3_600_000
    reader = Reader(driver, "a").join()
    driver.topic("in", 3)
    assert (driver.group.epoch, driver.group.assignment_epoch) == (3, 2)
    driver.now += 1_000
    assert reader.beat().owned == ["in-0", "in-1", "in-2"]


def test_a_clock_that_was_set_back_does_not_keep_a_group_waiting() -> None:
    driver = Driver(settings=ConsumerSettings(assignment_interval_ms=1_000))
    Reader(driver, "a").join()
    driver.now -= 3_600_000
    Reader(driver, "b").join()
    assert driver.group.assignment_epoch == driver.group.epoch


def test_the_assignor_that_most_members_ask_for_is_used(driver: Driver) -> None:
    reader = Reader(driver, "a", assignor="range").join()
    assert driver.shard.consumer.describe(GROUP).assignor_name == "range"
    Reader(driver, "b", assignor="uniform").join()
    Reader(driver, "c", assignor="uniform").join()
    assert driver.shard.consumer.describe(GROUP).assignor_name == "uniform"
    reader.leave()


def test_of_two_assignors_that_are_wanted_alike_the_default_is_no_exception(driver: Driver) -> None:
    Reader(driver, "a").join()
    assert driver.shard.consumer.describe(GROUP).assignor_name == "uniform"


def test_an_assignor_that_is_not_there(driver: Driver) -> None:
    assert Reader(driver, "a", assignor="sticky").join().error == "UNSUPPORTED_ASSIGNOR"


# Who it is ------------------------------------------------------------------------------------------------------


def test_a_member_without_an_id_gets_one_in_version_0(driver: Driver) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=GROUP, member_epoch=0, rebalance_timeout_ms=1, subscribed_topic_names=("in",), topic_partitions=[]
    )
    response = driver.send(request, Client("client", "/10.0.0.1", 0))
    assert response.member_id in driver.group.members
    assert driver.send(request, CLIENT).error_code == 42  # INVALID_REQUEST


def test_an_unknown_group_and_an_unknown_member(driver: Driver) -> None:
    assert Reader(driver, "a").send(member_epoch=1).error == "GROUP_ID_NOT_FOUND"
    assert Reader(driver, "a").send(member_epoch=-1).error == "GROUP_ID_NOT_FOUND"
    joined(driver, "a")
    assert Reader(driver, "b").send(member_epoch=1).error == "UNKNOWN_MEMBER_ID"
    assert Reader(driver, "b").leave().error == "UNKNOWN_MEMBER_ID"


def test_a_member_ahead_of_its_epoch_and_one_too_far_behind_are_fenced(driver: Driver) -> None:
    first, second = joined(driver, "a", "b")
    assert first.beat(member_epoch=first.epoch + 1).error == "FENCED_MEMBER_EPOCH"
    assert first.beat(member_epoch=first.epoch - 2).error == "FENCED_MEMBER_EPOCH"
    second.leave()


def test_a_member_on_its_previous_epoch_gets_its_assignment_again(driver: Driver) -> None:
    first, second = joined(driver, "a", "b")
    second.leave()
    before, owned = first.epoch, first.owned
    after = first.beat().epoch
    first.owned = owned
    assert after > before
    first.beat(member_epoch=before)
    assert (first.error, first.epoch, len(first.owned)) == ("NONE", after, 4)


def test_a_member_on_its_previous_epoch_that_has_more_than_it_was_given_is_fenced(driver: Driver) -> None:
    first, second = joined(driver, "a", "b")
    second.leave()
    before = first.epoch
    first.beat()
    stranger = [Owned(topic_id=UUID(int=99), partitions=(0,))]
    assert first.beat(member_epoch=before, topic_partitions=stranger).error == "FENCED_MEMBER_EPOCH"
    assert first.send(member_epoch=before).error == "FENCED_MEMBER_EPOCH", "it doesn't say what it has"


def test_a_fenced_member_joins_again_with_its_id(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    epoch = reader.epoch
    reader.join()
    assert (reader.error, reader.epoch, len(reader.owned)) == ("NONE", epoch, 4)


def test_a_full_group() -> None:
    driver = Driver(settings=ConsumerSettings(max_size=1, assignment_interval_ms=0))
    (reader,) = joined(driver, "a")
    assert Reader(driver, "b").join().error == "GROUP_MAX_SIZE_REACHED"
    assert reader.join().error == "NONE"


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"group_id": ""}, "GroupId"),
        ({"member_id": ""}, "MemberId"),
        ({"instance_id": " "}, "InstanceId"),
        ({"rack_id": ""}, "RackId"),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs"),
        ({"topic_partitions": None}, "TopicPartitions"),
        ({"topic_partitions": [Owned(topic_id=UUID(int=1), partitions=(0,))]}, "TopicPartitions"),
        ({"subscribed_topic_names": None}, "SubscribedTopicNames"),
        ({"member_epoch": -3}, "MemberEpoch"),
        ({"member_epoch": -2}, "InstanceId"),
    ],
)
def test_requests_that_are_wrong_by_themselves(driver: Driver, changes: dict[str, object], named: str) -> None:
    fine = {
        "group_id": GROUP,
        "member_id": "a",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1,
        "subscribed_topic_names": ("in",),
        "topic_partitions": [],
    }
    response = driver.send(ConsumerGroupHeartbeatRequest(**{**fine, **changes}))  # type: ignore[arg-type]
    assert response.error_code == 42
    assert named in (response.error_message or "")
    assert driver.log == []


# Timeouts and intervals -----------------------------------------------------------------------------------------


def test_a_silent_member_is_removed(driver: Driver) -> None:
    joined(driver, "a")
    driver.sleep(44_999)
    assert driver.group.members
    driver.sleep(1)
    assert driver.state() == "Empty"


def test_a_member_that_keeps_what_it_has_to_revoke_is_removed() -> None:
    driver = Driver()
    (first,) = joined(driver, "a", rebalance_timeout_ms=10_000)
    second = Reader(driver, "b").join()
    first.obeys = False
    first.beat()
    for _ in range(9):
        driver.sleep(1_000)
        assert first.beat().error == "NONE"
        second.beat()
    driver.sleep(1_000)
    assert first.beat().error == "UNKNOWN_MEMBER_ID"
    assert len(second.beat().owned) == 4


def test_members_are_told_a_short_interval_while_partitions_move_and_for_a_while_after(driver: Driver) -> None:
    first, second = joined(driver, "a", "b")
    driver.sleep(4_999)
    assert (first.send().interval, second.send().interval) == (500, 500)
    driver.sleep(1)
    assert (first.send().interval, second.send().interval) == (5_000, 5_000)
    third = Reader(driver, "c").join()
    assert (third.interval, first.send().interval, second.send().interval) == (500, 500, 500)
    driver.sleep(5_000)
    assert third.send().interval == 500, "they haven't revoked yet"
    reconcile(driver, first, second, third)
    assert [reader.send().interval for reader in (first, second, third)] == [5_000] * 3


def test_a_normal_interval_shorter_than_the_one_while_moving_counts() -> None:
    driver = Driver(settings=ConsumerSettings(heartbeat_interval_ms=100, assignment_interval_ms=0))
    assert Reader(driver, "a").join().interval == 100


def test_changed_settings_are_told_with_the_next_heartbeat(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    driver.sleep(7_000)
    assert reader.send().interval == 5_000
    driver.configure(heartbeat_interval_ms=7_000)
    assert reader.send().interval == 7_000


# Topics ---------------------------------------------------------------------------------------------------------


def test_topics_that_come_grow_and_go_are_assigned_at_once(driver: Driver) -> None:
    reader = Reader(driver, "a", "in", "later").join()
    driver.topic("later", 1)
    assert reader.beat().owned[-1:] == ["later-0"]
    driver.topic("in", 5)
    assert len(reader.beat().owned) == 6
    driver.topic("in", None)
    reader.beat()
    assert reader.beat().owned == ["later-0"]
    assert driver.state() == "Stable"


def test_other_topics_make_no_difference(driver: Driver) -> None:
    joined(driver, "a")
    epoch = driver.group.epoch
    driver.topic("other", 3)
    assert (driver.group.epoch, driver.kinds) == (epoch, [])


def test_what_changed_before_a_restart_is_noticed_by_the_first_heartbeat(driver: Driver) -> None:
    (reader,) = joined(driver, "a")
    driver.cluster.topics["in"] = 6
    driver.restart()
    assert len(reader.beat().owned) == 6


def test_many_that_are_silent_are_removed_without_a_look_at_all_members_and_topics_for_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver({f"topic-{number}": 1 for number in range(10)})
    for number in range(50):
        Reader(driver, f"m{number}", *driver.topics).join()
    looks: list[object] = []
    members, partitions = Draft.members, driver.cluster.partitions
    monkeypatch.setattr(Draft, "members", lambda draft: looks.append(draft) or members(draft))
    monkeypatch.setattr(driver.cluster, "partitions", lambda topic: looks.append(topic) or partitions(topic))
    driver.sleep(60_000)
    assert driver.state() == "Empty"
    assert len(looks) < 50


def test_the_topics_that_members_removed_at_once_leave_behind_are_logged() -> None:
    driver = Driver({"in": 4, "out": 1, "other": 1})
    staying = joined(driver, "stays")[0]
    for name, topic in (("a", "out"), ("b", "other")):
        Reader(driver, name, topic).join()
    driver.sleep(30_000)
    staying.beat()
    driver.sleep(20_000)
    assert set(driver.group.members) == {"stays"}
    assert driver.group.metadata_hash == metadata_hash(["in"], driver.cluster)
    assert driver.dump() == driver.dump(driver.replayed())


def test_a_member_more_is_known_to_move_without_a_look_at_all_the_others(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined(driver, "a", "b")
    assert not driver.group.moving
    looks: list[int] = []
    reconciled = CurrentAssignment.is_reconciled_to
    monkeypatch.setattr(
        CurrentAssignment, "is_reconciled_to", lambda each, epoch: looks.append(epoch) or reconciled(each, epoch)
    )
    driver.group.put_metadata("c", ConsumerMetadata())
    assert set(driver.group.moving) == {"c"}
    assert len(looks) == 1
