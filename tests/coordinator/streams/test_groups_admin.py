"""What administrators see of streams groups, and groups of another type under the same id."""

from __future__ import annotations

import pytest

from kohort.coordinator.step import Client
from kohort.coordinator.streams.states import GroupState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.delete_groups import DeleteGroupsResponse
from kohort.protocol.messages.heartbeat import HeartbeatRequest
from kohort.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kohort.protocol.messages.streams_group_describe import StreamsGroupDescribeResponse
from kohort.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kohort.streams.tasks import TaskId
from tests.coordinator.streams.driver import GROUP, App, Driver, joined, reconcile, stateful

GONE = "Dead"


def classic_join(driver: Driver, member_id: str = "") -> JoinGroupResponse:
    """The first answer to a consumer that speaks the classic protocol."""
    answers: list[JoinGroupResponse] = []
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )
    driver.perform(driver.shard.classic.join(request, Client("c", "h", 9), driver.now, answers.append))
    driver.sleep(3_000)
    return answers[0]


def classic_group(driver: Driver) -> str:
    """A classic group with a member; the member's id."""
    member_id = classic_join(driver).member_id
    assert not classic_join(driver, member_id).error_code
    return member_id


def delete(driver: Driver) -> ErrorCode:
    answers: list[list[DeleteGroupsResponse.Result]] = []
    driver.perform(driver.shard.delete_groups([GROUP], answers.append))
    return ErrorCode(answers[0][0].error_code)


# Describe -------------------------------------------------------------------------------------------------------


def test_a_group_is_described_whole() -> None:
    driver = Driver({"in": 2, f"{GROUP}-store-0-changelog": 2})
    app = App(driver, "m1", stateful(), endpoint=("host", 80), tags={"zone": "a"}, reports=True, instance="i")
    app.offsets, app.ends = {TaskId("0", 1): 5}, {TaskId("0", 1): 9}
    app.join(rack_id="rack")
    described = driver.shard.streams.describe(GROUP)
    StreamsGroupDescribeResponse(groups=[described]).encode(0)
    assert (described.error_code, described.group_state, described.group_epoch, described.assignment_epoch) == (
        0,
        "Stable",
        2,
        2,
    )
    assert described.topology is not None and described.topology.subtopologies is not None
    (part,) = described.topology.subtopologies
    assert (part.subtopology_id, part.source_topics) == ("0", ("in",))
    assert [(topic.name, topic.partitions) for topic in part.state_changelog_topics] == [
        (f"{GROUP}-store-0-changelog", 2)
    ]
    (member,) = described.members
    assert (member.member_id, member.member_epoch, member.instance_id, member.rack_id) == ("m1", 2, "i", "rack")
    assert (member.client_id, member.client_host, member.process_id) == ("client", "10.0.0.1", "process-m1")
    assert member.user_endpoint is not None
    assert (member.user_endpoint.host, member.user_endpoint.port, member.topology_epoch) == ("host", 80, 0)
    assert [(tag.key, tag.value) for tag in member.client_tags] == [("zone", "a")]
    assert [(told.partition, told.offset) for told in member.task_offsets] == [(1, 5)]
    assert [(told.partition, told.offset) for told in member.task_end_offsets] == [(1, 9)]
    for assignment in (member.assignment, member.target_assignment):
        assert [(ids.subtopology_id, ids.partitions) for ids in assignment.active_tasks] == [("0", (0, 1))]
    assert member.is_classic is False


def test_a_group_without_its_topics_shows_what_it_was_told() -> None:
    driver = Driver({})
    App(driver, "m1", stateful()).join()
    described = driver.shard.streams.describe(GROUP)
    assert described.group_state == "NotReady"
    assert described.topology is not None and described.topology.subtopologies is not None
    assert described.topology.subtopologies[0].source_topics == ("in",)
    assert described.topology.subtopologies[0].state_changelog_topics[0].partitions == 0


def test_after_a_restart_a_group_is_described_before_anybody_is_heard() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    before = driver.shard.streams.describe(GROUP)
    driver.restart()
    assert driver.shard.streams.describe(GROUP) == before


def test_an_unknown_group_is_not_found() -> None:
    described = Driver().shard.streams.describe(GROUP)
    assert (described.error_code, described.group_id) == (ErrorCode.GROUP_ID_NOT_FOUND, GROUP)


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_to_who_asks_for_classic_groups_a_streams_group_is_none(version: int, code: ErrorCode) -> None:
    driver = Driver()
    joined(driver, ["m1"])
    described = driver.shard.describe_group(GROUP, version)
    assert (described.group_state, described.error_code) == (GONE, code)


# List -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        ((), (), True),
        (("stable",), (), True),
        (("STABLE", "empty"), ("Streams",), True),
        (("empty",), (), False),
        ((), ("classic",), False),
        ((), ("classic", "streams"), True),
    ],
)
def test_groups_are_listed_by_state_and_type(states: tuple[str, ...], types: tuple[str, ...], found: bool) -> None:
    driver = Driver()
    joined(driver, ["m1"])
    listed = driver.shard.list_groups(states, types)
    assert [group.group_id for group in listed] == [GROUP] * found
    for group in listed:
        assert (group.group_type, group.protocol_type, group.group_state) == ("streams", "streams", "Stable")


@pytest.mark.parametrize("state", ["NotReady", "notready", "not_ready"])
def test_a_state_of_two_words_is_found_however_it_is_written(state: str) -> None:
    driver = Driver({})
    App(driver, "m1").join()
    assert driver.shard.list_groups([state])


def test_groups_are_counted_by_state() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    assert driver.shard.streams.count_by_state() == {GroupState.STABLE: 1}


# Delete ---------------------------------------------------------------------------------------------------------


def test_a_group_with_members_is_not_deleted() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    assert delete(driver) is ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_group_leaves_no_trace() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.leave()
    assert delete(driver) is ErrorCode.NONE
    assert driver.shard.streams.get(GROUP) is None
    assert driver.replayed().streams.get(GROUP) is None
    driver.sleep(100_000)
    latest = dict(driver.log)
    assert set(latest.values()) == {None}


def test_a_deleted_group_may_begin_again() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.leave()
    delete(driver)
    app.join()
    assert (app.epoch, len(app.have())) == (2, 4)


# Other types under the same id ----------------------------------------------------------------------------------


def test_members_of_a_classic_group_keep_streams_away() -> None:
    driver = Driver()
    classic_group(driver)
    app = App(driver, "m1")
    app.join()
    assert app.error is ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.shard.streams.get(GROUP) is None


def test_an_empty_classic_group_becomes_a_streams_group() -> None:
    driver = Driver()
    classic_group(driver)
    driver.sleep(30_000)
    assert driver.shard.describe_group(GROUP, 6).group_state == "Empty"
    app = App(driver, "m1")
    app.join()
    assert (app.error, app.have()) == (ErrorCode.NONE, ["0_0", "0_1", "0_2", "0_3"])
    assert driver.kinds[0] == "2-"
    assert driver.shard.classic.get(GROUP) is None
    assert driver.dump() == driver.dump(driver.replayed())
    assert driver.replayed().classic.get(GROUP) is None


def test_an_empty_streams_group_becomes_a_classic_group() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.leave()
    member_id = classic_join(driver).member_id
    assert driver.shard.streams.get(GROUP) is None
    assert not classic_join(driver, member_id).error_code
    assert [group.group_type for group in driver.shard.list_groups()] == ["classic"]
    assert driver.replayed().streams.get(GROUP) is None


def test_members_of_a_streams_group_keep_classic_ones_away() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    assert classic_join(driver).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert classic_join(driver, "m1").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    reconcile(app)
    assert len(app.have()) == 4


def test_a_classic_member_that_thinks_it_is_one_does_not_empty_the_place() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.leave()
    assert classic_join(driver, "stranger").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.state() == "Empty"


def test_classic_requests_of_a_member_of_a_streams_group_find_no_member() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    heartbeat = HeartbeatRequest(group_id=GROUP, generation_id=2, member_id="m1", group_instance_id=None)
    assert driver.shard.classic.heartbeat(heartbeat, driver.now) is ErrorCode.UNKNOWN_MEMBER_ID
    answers: list[SyncGroupResponse] = []
    sync = SyncGroupRequest(group_id=GROUP, generation_id=2, member_id="m1", group_instance_id=None)
    driver.perform(driver.shard.classic.sync(sync, Client("c", "h", 5), driver.now, answers.append))
    assert answers[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_unloaded_shard_has_no_groups_and_no_timers() -> None:
    driver = Driver()
    joined(driver, ["m1", "m2"])
    driver.shard.unload(driver.now)
    assert driver.shard.list_groups() == []
    assert len(driver.wheel) == 0
