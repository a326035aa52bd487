"""When tasks are placed, and what members get meanwhile."""

from __future__ import annotations

import logging

import pytest

from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.tasks import Role
from tests.coordinator.streams.driver import CLIENT, GROUP, App, Driver, joined, reconcile, stateful

SHUTDOWN, DELAYED, NO_TAGS = 4, 5, 6
ALL = ["0_0", "0_1", "0_2", "0_3"]


# The first members of a group -----------------------------------------------------------------------------------


def test_a_new_group_waits_for_more_members() -> None:
    driver = Driver(settings=StreamsSettings())
    first, second = App(driver, "m1"), App(driver, "m2")
    first.join()
    assert (first.status, first.have(), first.epoch, driver.state()) == ([DELAYED], [], 1, "Assigning")
    driver.sleep(2_999)
    second.join()
    assert second.status == [DELAYED]
    driver.sleep(1)
    first.beat()
    second.beat()
    assert (first.status, second.status) == ([], [])
    assert sorted(first.have() + second.have()) == ALL


def test_a_group_with_members_does_not_wait() -> None:
    driver = Driver(settings=StreamsSettings(assignment_interval_ms=0))
    first = App(driver, "m1")
    first.join()
    driver.sleep(3_000)
    reconcile(first)
    second = App(driver, "m2")
    second.join()
    assert (second.status, driver.state()) == ([], "Reconciling")


def test_a_group_that_became_empty_waits_again() -> None:
    driver = Driver(settings=StreamsSettings())
    app = App(driver, "m1")
    app.join()
    driver.sleep(3_000)
    app.beat()
    app.leave()
    app.join()
    assert (app.status, app.have()) == ([DELAYED], [])
    driver.sleep(3_000)
    app.beat()
    assert app.have() == ALL


def test_a_group_whose_members_all_left_while_it_waited_places_nothing() -> None:
    driver = Driver(settings=StreamsSettings())
    app = App(driver, "m1")
    app.join()
    app.leave()
    size = len(driver.log)
    driver.sleep(10_000)
    assert (driver.state(), len(driver.log)) == ("Empty", size)


def test_after_a_restart_nobody_waits() -> None:
    driver = Driver(settings=StreamsSettings())
    app = App(driver, "m1")
    app.join()
    driver.restart()
    app.beat()
    assert (app.have(), app.status) == (ALL, [])


# Placements that take their time --------------------------------------------------------------------------------


def test_while_tasks_are_being_placed_members_without_tasks_hear_so() -> None:
    driver = Driver(elsewhere=True)
    app = App(driver, "m1")
    app.join()
    assert (app.status, app.have(), app.epoch, driver.state()) == ([DELAYED], [], 1, "Assigning")
    driver.finish()
    assert driver.state() == "Reconciling"
    app.beat()
    assert (app.status, app.have(), app.epoch) == ([], ALL, 2)


def test_while_tasks_are_being_placed_members_with_tasks_work_on() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    driver.elsewhere = True
    second = App(driver, "m2")
    second.join()
    response = first.beat()
    assert (first.status, response.active_tasks, second.status) == ([], None, [DELAYED])
    driver.finish()
    reconcile(first, second)
    assert sorted(first.have() + second.have()) == ALL


def test_while_tasks_are_being_placed_nobody_gets_what_becomes_free() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    driver.elsewhere = True
    first.leave()
    second.beat()
    assert second.have() == []
    driver.sleep(1_000)
    driver.finish()
    second.beat()
    assert second.have() == ALL


def test_while_tasks_are_being_placed_a_member_may_give_up() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    first.beat()
    driver.elsewhere = True
    App(driver, "m3").join()
    first.full()
    assert not driver.group.members["m1"].current.revoking


def test_one_placement_at_a_time_is_worked_out() -> None:
    driver = Driver(elsewhere=True)
    for name in ("m1", "m2", "m3"):
        App(driver, name).join()
    assert [job.group_epoch for job in driver.jobs] == [2]


def test_a_placement_that_is_too_old_is_dropped_for_a_new_one() -> None:
    driver = Driver(elsewhere=True)
    first, second = App(driver, "m1"), App(driver, "m2")
    first.join()
    second.join()
    size = len(driver.log)
    driver.finish()
    assert ([job.group_epoch for job in driver.jobs], len(driver.log)) == ([3], size)
    driver.finish()
    reconcile(first, second)
    assert sorted(first.have() + second.have()) == ALL


def test_a_placement_for_a_static_member_that_was_replaced_is_dropped() -> None:
    driver = Driver(elsewhere=True)
    first = App(driver, "m1", instance="i")
    first.join()
    first.leave(-2)
    back = App(driver, "m2", instance="i", process=first.process)
    back.join()
    driver.finish()
    driver.finish()
    back.beat()
    assert back.have() == ALL


def test_a_placement_for_a_group_that_is_gone_comes_to_nothing() -> None:
    driver = Driver(elsewhere=True)
    App(driver, "m1").join()
    job = driver.jobs.pop()
    driver.shard.streams.unload()
    assert driver.shard.streams.placed(job, job.run(), driver.now).records == []


def test_a_placement_of_before_a_restart_comes_to_nothing() -> None:
    driver = Driver(elsewhere=True)
    app = App(driver, "m1")
    app.join()
    driver.restart()
    driver.finish()
    assert driver.group.assignment_epoch == 1
    app.beat()
    driver.finish()
    app.beat()
    assert app.have() == ALL


@pytest.mark.parametrize("elsewhere", [False, True])
def test_when_placing_fails_another_assignor_does_it(elsewhere: bool, caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver(elsewhere=elsewhere)
    driver.failing = True
    app = App(driver, "m1")
    with caplog.at_level(logging.WARNING):
        app.join()
        if elsewhere:
            driver.finish(fails=True)
            app.beat()
    assert app.have() == ALL
    assert "placement failed group=app epoch=2" in caplog.text


def test_what_cannot_be_stored_of_a_placement_is_worked_out_again() -> None:
    driver = Driver(elsewhere=True)
    app = App(driver, "m1")
    app.join()
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    driver.finish()
    driver.append_error = None
    app.beat()
    driver.finish()
    app.beat()
    assert app.have() == ALL


# Settings -------------------------------------------------------------------------------------------------------


def test_settings_that_placements_depend_on_are_a_new_epoch() -> None:
    driver = Driver({"in": 2, f"{GROUP}-store-0-changelog": 2})
    first, second = joined(driver, ["m1", "m2"], stateful())
    epoch = driver.group.epoch
    driver.configure(num_standby_replicas=1)
    first.beat()
    assert driver.group.epoch == epoch + 1
    reconcile(first, second)
    assert len(first.have(Role.STANDBY)) == len(second.have(Role.STANDBY)) == 1


def test_other_settings_are_told_with_the_next_heartbeat() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.beat()
    epoch = driver.group.epoch
    driver.configure(heartbeat_interval_ms=7_000, task_offset_interval_ms=20_000, acceptable_recovery_lag=5)
    response = driver.send(app.request(), CLIENT._replace(version=1))
    told = (response.heartbeat_interval_ms, response.task_offset_interval_ms, response.acceptable_recovery_lag)
    assert (told, driver.group.epoch) == ((7_000, 20_000, 5), epoch)


def test_clients_that_report_no_task_offsets_are_not_told_how() -> None:
    response = App(Driver(), "m1").join()
    assert (response.task_offset_interval_ms, response.acceptable_recovery_lag_v0) == (0, 0)


def test_clients_that_know_the_status_hear_of_tags_that_they_lack() -> None:
    driver = Driver()
    driver.configure(rack_aware_assignment_tags=("zone", "rack"))
    app = App(driver, "m1", tags={"zone": "a"})
    request = app.join_request()
    assert app.take(driver.send(request, CLIENT._replace(version=0))).status == []
    (status,) = app.take(driver.send(request, CLIENT._replace(version=1))).status or []
    assert status.status_code == NO_TAGS and "rack" in status.status_detail and "zone" not in status.status_detail


def test_the_assignor_is_the_groups() -> None:
    driver = Driver(elsewhere=True)
    driver.configure(assignor_name="sticky", rack_aware_assignment_tags=("zone",), num_standby_replicas=2)
    App(driver, "m1", tags={"zone": "a"}).join()
    (job,) = driver.jobs
    assert (job.assignor, job.group.rack_tags, job.group.standbys) == ("sticky", ("zone",), 2)
    assert job.group.members[0].tags == {"zone": "a"}


# All members together -------------------------------------------------------------------------------------------


def test_when_one_asks_for_a_shutdown_all_hear_of_it() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    second.beat()
    first.beat(shutdown_application=True)
    response = second.beat()
    assert (first.status, second.status) == ([SHUTDOWN], [SHUTDOWN])
    assert response.status is not None and "m1" in response.status[0].status_detail


def test_a_member_may_ask_for_a_shutdown_as_it_leaves() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    first.driver.send(first.request(member_epoch=-1, shutdown_application=True))
    second.full()
    assert second.status == [SHUTDOWN]


def test_a_group_that_was_shut_down_may_start_again() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.beat(shutdown_application=True)
    app.leave()
    app.join()
    assert app.status == []


def hosts(response: StreamsGroupHeartbeatResponse) -> dict[str, int] | None:
    """The instances that an answer tells of, and how many partitions they read."""
    told = response.partitions_by_user_endpoint
    if told is None:
        return None
    return {each.user_endpoint.host: sum(len(topic.partitions) for topic in each.active_partitions) for each in told}


def test_members_hear_who_has_which_partitions() -> None:
    driver = Driver()
    first, second = App(driver, "m1", endpoint=("a", 1)), App(driver, "m2", endpoint=("b", 2))
    assert hosts(first.join()) == {"a": 4}
    second.join()
    reconcile(first, second)
    first.endpoint_epoch = second.endpoint_epoch = -1
    assert hosts(first.beat()) == hosts(second.beat()) == {"a": 2, "b": 2}


def test_there_is_no_map_without_endpoints() -> None:
    driver = Driver()
    app = App(driver, "m1")
    app.endpoint_epoch = 0
    assert hosts(app.join()) is None
    driver.topic("in", 5)
    assert hosts(app.beat()) is None
    assert driver.group.soft.endpoint_epoch == 0


def test_who_knows_the_map_is_not_told_again() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"], endpoint=("a", 1))
    assert hosts(app.beat()) is None


@pytest.mark.parametrize("what", ["joins", "leaves", "moves", "grows"])
def test_the_map_is_told_when_it_changes(what: str) -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"], endpoint=("a", 1))
    second.beat()
    before = second.endpoint_epoch
    if what == "joins":
        App(driver, "m3", endpoint=("c", 3)).join()
    elif what == "leaves":
        first.leave()
    elif what == "moves":
        first.endpoint = ("z", 9)
        first.join()
    else:
        driver.topic("in", 5)
    response = second.beat()
    assert response.endpoint_information_epoch > before
    assert hosts(response) is not None


def test_without_endpoints_the_map_is_empty() -> None:
    driver = Driver()
    app = App(driver, "m1")
    assert hosts(app.join()) == {}


def test_after_a_restart_everybody_hears_the_map_again() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"], endpoint=("a", 1))
    driver.restart()
    assert hosts(app.beat()) == {"a": 4}
