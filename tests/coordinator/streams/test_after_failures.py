"""What was worked out beside the log may be lost, in a restart or with records that couldn't be stored."""

from __future__ import annotations

import pytest

from kohort.coordinator.placement.model import Placement
from kohort.coordinator.step import Client, Step
from kohort.coordinator.streams.environment import PlacementJob
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.streams.tasks import Role, TaskId
from tests.coordinator.streams.driver import GROUP, App, Driver, joined, reconcile, stateful

END = 1_000
CHANGELOG = f"{GROUP}-store-0-changelog"


class WarmingUp:
    """A member with two stateful tasks; another warms one of them up, and has just got all of its state."""

    def __init__(self) -> None:
        self.driver = Driver({"in": 2, CHANGELOG: 2})
        self.driver.configure(acceptable_recovery_lag=100)
        (self.old,) = joined(self.driver, ["old"], stateful(), reports=True)
        self.report(self.old, *(TaskId("0", partition) for partition in range(2)))
        self.new = App(self.driver, "new", stateful(), reports=True)
        self.new.join()
        self.new.full()
        (self.moving,) = (task for task, role in self.new.tasks.items() if role is Role.WARMUP)

    @staticmethod
    def report(app: App, *tasks: TaskId) -> None:
        app.offsets = dict.fromkeys(tasks, END)
        app.ends = dict(app.offsets)
        app.report()

    def check_handed_over(self) -> None:
        for _ in range(20):
            self.driver.sleep(5_000)
            self.old.full()
            self.new.full()
            self.report(self.old, *self.old.tasks)
            self.report(self.new, *self.new.tasks)
        assert self.new.have() == [f"0_{self.moving.partition}"]
        assert len(self.old.have()) == 1
        assert self.driver.state() == "Stable"


def test_a_warm_up_that_is_done_when_the_coordinator_restarts_takes_over() -> None:
    group = WarmingUp()
    group.driver.restart()
    group.report(group.new, group.moving)
    group.check_handed_over()


def test_a_warm_up_takes_over_though_the_record_of_it_was_not_stored() -> None:
    group = WarmingUp()
    group.driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    group.report(group.new, group.moving)
    group.driver.append_error = None
    group.check_handed_over()


def test_who_did_not_confirm_a_revocation_has_a_deadline_though_the_record_of_the_confirmation_was_not_stored() -> None:
    driver = Driver({"in": 4})
    (old,) = joined(driver, ["old"])
    new = App(driver, "new")
    new.join()
    reconcile(new)
    old.beat()
    timer = driver.shard.streams._timers.get(GROUP, "old")
    assert timer is not None
    assert timer.rebalance_deadline is not None
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    old.full()
    driver.append_error = None
    assert timer.rebalance_deadline is not None


def test_a_classic_join_that_could_not_be_stored_leaves_no_second_group() -> None:
    driver = Driver({"in": 1})
    (app,) = joined(driver, ["m"])
    app.leave()
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.Protocol(name="range", metadata=b"")],
    )

    def join() -> Step:
        return driver.shard.classic.join(request, Client("c", "h", 3), driver.now, lambda response: None)

    join()  # its records are lost
    driver.perform(join())
    assert [group.group_type for group in driver.shard.list_groups()] == ["classic"]


def test_the_map_of_endpoints_of_a_large_group_is_told_once_an_interval_while_tasks_move() -> None:
    driver = Driver({"in": 100})
    apps = [App(driver, f"m{number}", endpoint=("h", number + 1)) for number in range(70)]
    for app in apps:
        app.join()
    epochs = []
    for app in apps:
        app.full()
        epochs.append(driver.group.soft.endpoint_epoch)
    assert len(set(epochs)) <= 3
    driver.sleep(5_000)
    for _ in range(2):
        for app in apps:
            app.full()
    assert not driver.group.soft.endpoints_stale


def test_members_of_a_replaced_topology_keep_no_tasks_however_much_state_they_have() -> None:
    driver = Driver({"in": 2, "in2": 2, CHANGELOG: 2})
    (old,) = joined(driver, ["old"], stateful(), reports=True)
    WarmingUp.report(old, *old.tasks)
    new = App(driver, "new", stateful("0", "in2"), reports=True, epoch=1)
    new.join()
    reconcile(old, new)
    assert (old.have(), new.have()) == ([], ["0_0", "0_1"])
    assert new.have(Role.WARMUP) == []


def test_a_group_is_placed_anew_though_no_assignor_could(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver({"in": 2}, elsewhere=True)
    app = App(driver, "m")
    app.join()

    def failing(job: PlacementJob) -> Placement:
        raise RuntimeError("out of order")

    with monkeypatch.context() as broken:
        broken.setattr(PlacementJob, "run", failing)
        with pytest.raises(RuntimeError):
            driver.finish(fails=True)
    app.full()
    driver.finish()
    app.full()
    assert app.have() == ["0_0", "0_1"]
