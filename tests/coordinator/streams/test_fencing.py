from __future__ import annotations

import pytest

from kohort.coordinator.modern.states import MemberState
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import TaskIds
from tests.coordinator.streams.driver import App, Driver, joined, reconcile

SESSION = 45_000
ALL = ["0_0", "0_1", "0_2", "0_3"]


def half_given_up() -> tuple[Driver, App, App]:
    """A group whose first member was told to give up half of its tasks, and hasn't said yet that it did."""
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    first.beat()
    assert driver.group.members["m1"].current.state is MemberState.UNREVOKED
    return driver, first, second


# Strangers ------------------------------------------------------------------------------------------------------


def test_a_stranger_with_an_epoch_is_not_known() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    stranger = App(driver, "stranger")
    stranger.beat(member_epoch=2)
    assert stranger.error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("epoch", [-1, 1])
def test_without_a_group_there_is_nothing_to_go_on_with(epoch: int) -> None:
    app = App(Driver(), "m1")
    app.beat(member_epoch=epoch)
    assert app.error is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_stranger_cannot_leave() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    stranger = App(driver, "stranger")
    stranger.leave()
    assert stranger.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_refused_heartbeat_says_why_and_changes_nothing() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    before, size = driver.dump(), len(driver.log)
    response = app.beat(member_epoch=99)
    assert response.error_message and "99" in response.error_message
    assert (driver.dump(), len(driver.log)) == (before, size)


def test_a_refused_heartbeat_is_no_sign_of_life() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    driver.sleep(SESSION - 1)
    app.beat(member_epoch=99)
    driver.sleep(1)
    assert driver.state() == "Empty"


def test_a_full_group_takes_nobody_in() -> None:
    driver = Driver()
    driver.configure(max_size=1)
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    assert second.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    first.join()
    assert first.error is ErrorCode.NONE


# Lost answers ---------------------------------------------------------------------------------------------------


def test_a_join_whose_answer_was_lost_is_answered_again() -> None:
    driver = Driver()
    app = App(driver, "m1")
    driver.send(app.join_request())
    app.join()
    assert (app.have(), app.epoch, driver.group.epoch) == (ALL, 2, 2)


def test_a_member_without_tasks_that_joins_again_gets_what_there_is_by_now() -> None:
    driver = Driver({})
    app = App(driver, "m1")
    app.join()
    assert app.have() == []
    driver.topic("in", 4)
    app.join()
    assert (app.have(), app.epoch) == (ALL, driver.group.epoch)


def test_a_new_epoch_whose_answer_was_lost_is_told_again() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    second.leave()
    first.lost()
    assert driver.group.members["m1"].current.epoch == driver.group.epoch > first.epoch
    first.full()
    assert (first.have(), first.epoch) == (ALL, driver.group.epoch)


def test_answers_may_be_lost_again_and_again() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    second.leave()
    for name in ("m3", "m4"):
        first.lost()
        first.lost()
        App(driver, name).join()
    reconcile(first)
    assert first.error is ErrorCode.NONE


def test_a_revocation_whose_answer_was_lost_is_told_again() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    first.lost()
    assert len(first.have()) == 4
    first.full()
    assert len(first.have()) == 2


def test_on_an_old_epoch_a_member_that_says_nothing_of_its_tasks_is_fenced() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    second.leave()
    first.lost()
    first.beat()
    assert first.error is ErrorCode.FENCED_MEMBER_EPOCH


def test_on_an_old_epoch_a_member_with_more_than_it_was_given_is_fenced() -> None:
    driver = Driver({"in": 4, "other": 1})
    first, second = joined(driver, ["m1", "m2"])
    third = App(driver, "m3")
    third.join()
    reconcile(first, second, third)
    epoch = first.epoch
    second.leave()
    first.lost()
    others = sorted(set(ALL) - set(driver.group.members["m1"].current.assigned and first.have()))
    taken = TaskIds(subtopology_id="0", partitions=tuple(int(name[2:]) for name in others))
    first.beat(member_epoch=epoch, active_tasks=[taken], standby_tasks=[], warmup_tasks=[])
    assert first.error is ErrorCode.FENCED_MEMBER_EPOCH


def test_who_is_fenced_joins_anew_with_what_it_was_given() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.beat(member_epoch=99)
    assert app.error is ErrorCode.FENCED_MEMBER_EPOCH
    app.join()
    assert (app.have(), app.epoch) == (ALL, 2)


def test_a_late_request_of_an_old_epoch_moves_nobody() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    late = first.request(**first.owned())
    second.leave()
    reconcile(first)
    App(driver, "m3").join()
    current = driver.group.members["m1"].current
    driver.send(late)
    assert driver.group.members["m1"].current == current


def test_a_late_join_gives_up_nothing() -> None:
    driver = Driver()
    app = App(driver, "m1")
    late = app.join_request()
    app.join()
    App(driver, "m2").join()
    driver.send(late)
    assert not driver.group.members["m1"].current.revoking
    assert len(driver.group.members["m1"].current.assigned) == 4


# Timeouts -------------------------------------------------------------------------------------------------------------


def test_a_silent_member_is_removed_at_its_session_timeout_not_before() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    driver.sleep(10_000)
    first.beat()
    driver.sleep(SESSION - 10_001)
    assert list(driver.group.members) == ["m1", "m2"]
    driver.sleep(1)
    assert list(driver.group.members) == ["m1"]
    second.beat()
    assert second.error is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member_for_as_long_as_they_come() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    for _ in range(100):
        driver.sleep(SESSION - 1)
        app.beat()
        assert app.error is ErrorCode.NONE


def test_tasks_of_a_dead_member_are_placed_without_anybodys_doing() -> None:
    driver = Driver()
    first, _ = joined(driver, ["m1", "m2"])
    driver.sleep(30_000)
    first.beat()
    driver.sleep(20_000)
    assert driver.group.epoch == driver.group.assignment_epoch
    first.beat()
    assert first.have() == ALL


def test_members_that_die_together_are_removed_together() -> None:
    driver = Driver()
    apps = joined(driver, ["m1", "m2", "m3", "m4"])
    epoch = driver.group.epoch
    driver.sleep(30_000)
    apps[0].beat()
    driver.sleep(20_000)
    assert (list(driver.group.members), driver.group.epoch) == (["m1"], epoch + 1)
    assert driver.dump() == driver.dump(driver.replayed())
    reconcile(apps[0])
    assert apps[0].have() == ALL


def test_a_session_timeout_that_changes_counts_from_the_next_heartbeat() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    driver.configure(session_timeout_ms=60_000)
    app.beat()
    driver.sleep(59_999)
    assert driver.group.members
    driver.sleep(1)
    assert not driver.group.members


def test_a_member_that_does_not_give_up_in_time_is_removed() -> None:
    driver, first, second = half_given_up()
    for _ in range(5):
        driver.sleep(11_999)
        first.full() if False else first.beat()
        second.beat()
    assert "m1" in driver.group.members
    driver.sleep(5)
    assert list(driver.group.members) == ["m2"]
    second.beat()
    assert second.have() == ALL


def test_a_member_that_gives_up_in_time_stays() -> None:
    driver, first, second = half_given_up()
    driver.sleep(30_000)
    first.full()
    second.beat()
    for _ in range(5):
        driver.sleep(30_000)
        first.beat()
        second.beat()
    assert list(driver.group.members) == ["m1", "m2"]


def test_a_removal_that_cannot_be_stored_is_tried_again() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.sleep(SESSION)
    driver.append_error = None
    assert driver.group.members
    driver.sleep(SESSION)
    assert not driver.group.members


def test_a_heartbeat_that_cannot_be_stored_is_refused_and_forgotten() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    before = driver.dump()
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    second = App(driver, "m2")
    second.join()
    assert second.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert driver.dump() == before
    second.join()
    reconcile(first, second)
    assert sorted(first.have() + second.have()) == ALL


def test_a_group_whose_first_record_cannot_be_stored_is_none() -> None:
    driver = Driver()
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    App(driver, "m1").join()
    assert driver.shard.streams.get("app") is None


# A restart ------------------------------------------------------------------------------------------------------


def test_after_a_restart_sessions_begin_anew() -> None:
    driver = Driver()
    joined(driver, ["m1"])
    driver.sleep(SESSION - 1)
    driver.restart()
    driver.sleep(SESSION - 1)
    assert driver.group.members
    driver.sleep(1)
    assert not driver.group.members


def test_after_a_restart_a_member_goes_on_as_if_nothing_had_been() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    before = driver.dump()
    driver.restart()
    reconcile(first, second)
    assert driver.dump() == before


def test_after_a_restart_what_was_to_be_given_up_still_is() -> None:
    driver, first, second = half_given_up()
    driver.restart()
    driver.sleep(30_000)
    first.beat()
    second.beat()
    driver.sleep(30_000)
    assert list(driver.group.members) == ["m2"]
