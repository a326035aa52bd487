from __future__ import annotations

import pytest

from kohort.protocol.messages.streams_group_heartbeat import KeyValue
from kohort.streams.tasks import Role, TaskId
from tests.coordinator.streams.driver import GROUP, App, Driver, joined, reconcile, stateful, stateless

ALL = ["0_0", "0_1", "0_2", "0_3"]


def test_the_first_member_gets_all_tasks_at_once() -> None:
    driver = Driver()
    app = App(driver, "m1")
    app.join()
    assert app.have() == ALL
    assert (app.epoch, driver.group.epoch, driver.group.assignment_epoch, driver.state()) == (2, 2, 2, "Stable")


def test_a_second_member_gets_its_half_when_the_first_has_given_it_up() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    assert (second.epoch, second.have()) == (3, [])
    first.beat()
    assert (first.epoch, len(first.have())) == (2, 2)
    second.beat()
    assert second.have() == []
    first.full()
    second.beat()
    assert (first.epoch, second.epoch, driver.state()) == (3, 3, "Stable")
    assert sorted(first.have() + second.have()) == ALL


def test_a_member_that_leaves_passes_its_tasks_on() -> None:
    driver = Driver()
    first, second = joined(driver, ["m1", "m2"])
    response = second.leave()
    assert (response.member_epoch, response.error_code) == (-1, 0)
    reconcile(first)
    assert first.have() == ALL


def test_the_last_member_leaves_an_empty_group() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    app.leave()
    assert (driver.state(), driver.group.members, driver.group.target) == ("Empty", {}, {})


def test_states_follow_from_what_members_have_done() -> None:
    driver = Driver()
    (first,) = joined(driver, ["m1"])
    second = App(driver, "m2")
    second.join()
    assert driver.state() == "Reconciling"
    reconcile(first, second)
    assert driver.state() == "Stable"


def test_each_change_of_a_dynamic_member_is_a_new_epoch() -> None:
    driver = Driver()
    (app,) = joined(driver, ["m1"])
    epoch = driver.group.epoch
    app.beat(rack_id="rack")
    app.beat(client_tags=[KeyValue(key="zone", value="a")])
    app.beat(rebalance_timeout_ms=1_000)
    assert driver.group.epoch == epoch + 3
    metadata = driver.group.members["m1"].metadata
    assert (metadata.rack_id, metadata.tags, metadata.rebalance_timeout_ms) == ("rack", {"zone": "a"}, 1_000)


def test_what_a_heartbeat_leaves_out_is_as_before() -> None:
    driver = Driver()
    app = App(driver, "m1", endpoint=("host", 1), tags={"zone": "a"})
    app.join()
    before = driver.group.members["m1"].metadata
    app.beat()
    assert driver.group.members["m1"].metadata == before
    assert (before.process_id, before.rebalance_timeout_ms, before.endpoint) == ("process-m1", 60_000, ("host", 1))


def test_who_joins_anew_without_an_endpoint_has_none() -> None:
    driver = Driver()
    app = App(driver, "m1", endpoint=("host", 1))
    app.join()
    app.endpoint = None
    app.join()
    assert driver.group.members["m1"].metadata.endpoint is None


# Processes ------------------------------------------------------------------------------------------------------


def test_a_task_is_not_given_to_a_member_whose_process_still_has_it() -> None:
    driver = Driver({"in": 1})
    (first,) = joined(driver, ["m1"], process="p")
    second = App(driver, "m2", process="p")
    second.join()
    first.leave()
    second.beat()
    assert second.have() == ["0_0"]


def test_a_standby_waits_until_its_process_has_given_up_the_task() -> None:
    driver = Driver({"in": 2, f"{GROUP}-store-0-changelog": 2})
    driver.configure(num_standby_replicas=1, num_warmup_replicas=0)
    first, second = joined(driver, ["m1", "m2"], stateful())
    assert sorted(first.have() + first.have(Role.STANDBY)) == ["0_0", "0_1"]
    assert sorted(second.have() + second.have(Role.STANDBY)) == ["0_0", "0_1"]


def test_a_crash_makes_a_standby_the_running_task_without_a_restore() -> None:
    driver = Driver({"in": 2, f"{GROUP}-store-0-changelog": 2})
    driver.configure(num_standby_replicas=1)
    first, second = joined(driver, ["m1", "m2"], stateful())
    second.leave()
    response = first.beat()
    assert (first.have(), first.have(Role.STANDBY), first.epoch) == (["0_0", "0_1"], [], driver.group.epoch)
    assert response.member_epoch == driver.group.assignment_epoch


def test_a_copy_waits_for_the_running_task_and_stays_a_copy_meanwhile() -> None:
    driver = Driver({"in": 2, f"{GROUP}-store-0-changelog": 2})
    driver.configure(num_standby_replicas=1, num_warmup_replicas=0)
    (first,) = joined(driver, ["m1"], stateful())
    second = App(driver, "m2", stateful())
    second.join()
    assert sorted(second.have() + second.have(Role.STANDBY)) == second.have(Role.STANDBY) != []
    first.beat()
    second.beat()
    assert second.have() == []
    first.full()
    second.beat()
    assert len(second.have()) == 1


def test_who_stops_a_task_may_keep_a_copy_of_it() -> None:
    driver = Driver({"in": 2, f"{GROUP}-store-0-changelog": 2})
    driver.configure(num_standby_replicas=1, num_warmup_replicas=0)
    (first,) = joined(driver, ["m1"], stateful())
    second = App(driver, "m2", stateful())
    second.join()
    first.beat()
    current = driver.group.members["m1"].current
    assert (len(first.have()), len(first.have(Role.STANDBY))) == (1, 1)
    assert list(current.revoking.values()) == [Role.ACTIVE]
    assert current.revoking.keys() <= current.assigned.keys()


# A whole life ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standbys", [0, 1])
def test_instances_come_and_go_and_all_tasks_run(standbys: int) -> None:
    driver = Driver({"in": 6, "plain": 3, f"{GROUP}-store-0-changelog": 6})
    driver.configure(num_standby_replicas=standbys)
    parts = (stateful("0", "in"), stateless("1", "plain"))
    apps = joined(driver, ["m1"], *parts)
    for name in ("m2", "m3", "m4"):
        app = App(driver, name, *parts)
        app.join()
        apps.append(app)
        reconcile(*apps)
    for _ in range(3):
        apps.pop(0).leave()
        reconcile(*apps)
    (last,) = apps
    assert sorted(last.tasks) == [*(TaskId("0", n) for n in range(6)), *(TaskId("1", n) for n in range(3))]
    assert driver.dump() == driver.dump(driver.replayed())
