"""Stateful tasks move when their state is where they are to go, not before."""

from __future__ import annotations

import pytest

from kohort.streams.tasks import Role, TaskId
from tests.coordinator.streams.driver import GROUP, App, Driver, joined, reconcile, stateful

END = 1_000_000
LAG = 10_000
CHANGELOG = f"{GROUP}-store-0-changelog"


class Moving:
    """A member with four stateful tasks and all their state, and another that comes without any."""

    def __init__(self, **settings: int) -> None:
        self.driver = Driver({"in": 4, CHANGELOG: 4})
        self.driver.configure(**settings)
        (self.old,) = joined(self.driver, ["m1"], stateful(), reports=True)
        self.restored(self.old, END, *range(4))
        self.new = App(self.driver, "m2", stateful(), reports=True)
        self.new.join()
        self.reconcile()

    @staticmethod
    def restored(app: App, offset: int, *partitions: int) -> None:
        """The member has that much of these tasks' state, and says so."""
        for partition in partitions:
            app.offsets[TaskId("0", partition)] = offset
            app.ends[TaskId("0", partition)] = END
        app.report()

    def reconcile(self) -> None:
        reconcile(self.old, self.new)

    def targets(self) -> list[int]:
        """How many tasks the target gives each of them."""
        return [len(self.driver.group.target[app.name]) for app in (self.old, self.new)]


def partitions(names: list[str]) -> list[int]:
    return [int(name[2:]) for name in names]


def test_tasks_stay_where_their_state_is_while_others_warm_up() -> None:
    moving = Moving()
    assert moving.targets() == [2, 2]
    assert len(moving.old.have()) == 4
    assert (moving.new.have(), len(moving.new.have(Role.WARMUP))) == ([], 2)
    assert moving.driver.state() == "Stable"


@pytest.mark.parametrize("budget", [1, 2])
def test_no_more_warm_ups_than_there_may_be(budget: int) -> None:
    moving = Moving(num_warmup_replicas=budget)
    assert len(moving.new.have(Role.WARMUP)) == budget


def test_a_task_that_is_warm_moves_by_itself() -> None:
    moving = Moving()
    first = partitions(moving.new.have(Role.WARMUP))[0]
    moving.restored(moving.new, END - LAG, first)
    moving.reconcile()
    assert partitions(moving.new.have()) == [first]
    assert len(moving.old.have()) == 3
    assert len(moving.new.have(Role.WARMUP)) == 1


def test_a_task_that_is_not_warm_enough_stays() -> None:
    moving = Moving()
    first = partitions(moving.new.have(Role.WARMUP))[0]
    epoch = moving.driver.group.epoch
    moving.restored(moving.new, END - LAG - 1, first)
    moving.reconcile()
    assert (moving.new.have(), moving.driver.group.epoch) == ([], epoch)


def test_one_after_the_other_all_tasks_get_where_they_are_to_be() -> None:
    moving = Moving(num_warmup_replicas=1)
    for moved in (1, 2):
        moving.restored(moving.new, END, *partitions(moving.new.have(Role.WARMUP)))
        moving.reconcile()
        assert len(moving.new.have()) == moved
    assert (moving.old.have(Role.WARMUP), moving.new.have(Role.WARMUP)) == ([], [])
    assert [len(app.tasks) for app in (moving.old, moving.new)] == [2, 2]
    assert moving.driver.dump() == moving.driver.dump(moving.driver.replayed())


def test_a_group_at_its_target_hears_of_offsets_without_a_stir() -> None:
    moving = Moving()
    moving.restored(moving.new, END, *partitions(moving.new.have(Role.WARMUP)))
    moving.reconcile()
    epoch = moving.driver.group.epoch
    for _ in range(3):
        moving.restored(moving.new, END, 0, 1, 2, 3)
        moving.reconcile()
    assert moving.driver.group.epoch == epoch


def test_while_a_task_warms_up_heartbeats_change_nothing() -> None:
    moving = Moving()
    epoch, size = moving.driver.group.epoch, len(moving.driver.log)
    for _ in range(5):
        moving.reconcile()
        moving.restored(moving.new, 5, *partitions(moving.new.have(Role.WARMUP)))
    assert (moving.driver.group.epoch, len(moving.driver.log)) == (epoch, size)


def test_without_warm_ups_tasks_move_at_once() -> None:
    moving = Moving(num_warmup_replicas=0)
    assert (len(moving.old.have()), len(moving.new.have())) == (2, 2)


def test_a_client_that_tells_no_offsets_gets_its_tasks_at_once() -> None:
    driver = Driver({"in": 4, CHANGELOG: 4})
    first, second = joined(driver, ["m1", "m2"], stateful())
    assert (len(first.have()), len(second.have())) == (2, 2)


def test_a_warm_up_that_is_lost_is_replaced() -> None:
    moving = Moving()
    moving.new.leave()
    third = App(moving.driver, "m3", stateful(), reports=True)
    third.join()
    reconcile(moving.old, third)
    assert (len(moving.old.have()), len(third.have(Role.WARMUP))) == (4, 2)


def test_the_end_of_an_owner_does_not_wait_for_a_warm_up() -> None:
    moving = Moving()
    moving.old.leave()
    reconcile(moving.new)
    assert len(moving.new.have()) == 4


def test_a_member_that_has_state_on_disk_gets_its_tasks_back() -> None:
    driver = Driver({"in": 4, CHANGELOG: 4})
    (first,) = joined(driver, ["m1"], stateful(), reports=True)
    Moving.restored(first, END, 0, 1, 2, 3)
    back = App(driver, "m2", stateful(), reports=True)
    back.offsets = {TaskId("0", 1): END, TaskId("0", 3): END - 5}
    back.ends = {TaskId("0", 1): END, TaskId("0", 3): END}
    back.join()
    reconcile(first, back)
    assert (back.have(), back.have(Role.WARMUP)) == (["0_1", "0_3"], [])


def test_a_restart_moves_no_task_to_where_its_state_is_not() -> None:
    moving = Moving()
    before = dict(moving.old.tasks), dict(moving.new.tasks)
    moving.driver.restart()
    for app in (moving.old, moving.new):
        app.report(**app.owned())
    moving.reconcile()
    assert (moving.old.tasks, moving.new.tasks) == before
    moving.restored(moving.new, END, *partitions(moving.new.have(Role.WARMUP)))
    moving.reconcile()
    assert len(moving.new.have()) == 2


def test_a_restart_waits_for_what_members_have_to_say() -> None:
    moving = Moving()
    moving.driver.restart()
    moving.old.report(**moving.old.owned())
    moving.old.beat()
    assert len(moving.old.have()) == 4


def test_long_after_a_restart_members_that_report_nothing_hold_nothing_up() -> None:
    moving = Moving()
    moving.driver.restart()
    for _ in range(13):
        moving.reconcile()
        assert [len(app.have()) for app in (moving.old, moving.new)] == [4, 0]
        moving.driver.sleep(5_000)
    moving.reconcile()
    assert [len(app.have()) for app in (moving.old, moving.new)] == [2, 2]


def test_more_warm_ups_allowed_means_more_warm_ups() -> None:
    moving = Moving(num_warmup_replicas=1)
    moving.driver.configure(num_warmup_replicas=2)
    moving.reconcile()
    assert len(moving.new.have(Role.WARMUP)) == 2


def test_a_static_member_is_back_where_it_warmed_up() -> None:
    driver = Driver({"in": 4, CHANGELOG: 4})
    (old,) = joined(driver, ["m1"], stateful(), reports=True)
    Moving.restored(old, END, 0, 1, 2, 3)
    new = App(driver, "m2", stateful(), reports=True, instance="i")
    new.join()
    reconcile(old, new)
    warming = new.have(Role.WARMUP)
    new.leave(-2)
    back = App(driver, "m3", stateful(), reports=True, instance="i", process=new.process)
    back.join()
    reconcile(old, back)
    assert (back.have(Role.WARMUP), len(old.have())) == (warming, 4)
