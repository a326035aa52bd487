"""Random applications against what must never happen: two owners of a task, two copies in a process, a lost record."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kohort.coordinator.modern.ownership import Ownership
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kohort.streams.tasks import Role, TaskId
from tests.coordinator.streams.driver import GROUP, App, Driver, stateful, stateless

SESSION = 45_000
END = 100_000
WHICH = st.integers(0, 19)


class Groups(RuleBasedStateMachine):
    """A group of up to a handful of members in three processes."""

    def __init__(self) -> None:
        super().__init__()
        self.names = 0
        self.alive: list[App] = []
        self.away: list[App] = []
        self.unsure: list[App] = []  # an answer to these was lost, so they'll say all that they have
        self.old: dict[str, list[StreamsGroupHeartbeatRequest]] = {}
        self.epochs = (0, 0)
        self.driver: Driver

    @initialize(
        delay=st.sampled_from([0, 3_000]),
        interval=st.sampled_from([0, 2_000]),
        standbys=st.integers(0, 2),
        warmups=st.integers(0, 2),
        elsewhere=st.booleans(),
    )
    def begin(self, delay: int, interval: int, standbys: int, warmups: int, elsewhere: bool) -> None:
        self.driver = Driver(
            {"in": 3, "plain": 2, f"{GROUP}-store-0-changelog": 3},
            StreamsSettings(
                assignment_interval_ms=interval,
                initial_rebalance_delay_ms=delay,
                num_standby_replicas=standbys,
                num_warmup_replicas=warmups,
                assignor_name="sticky",
            ),
            elsewhere=elsewhere,
        )

    def new_app(self, process: int, instance: str | None, reports: bool) -> App:
        self.names += 1
        app = App(
            self.driver,
            f"m{self.names}",
            stateful("0", "in"),
            stateless("1", "plain"),
            process=f"p{process}",
            instance=instance,
            reports=reports,
        )
        app.endpoint = (f"host{process}", 1)
        return app

    def is_member(self, app: App) -> bool:
        group = self.driver.shard.streams.get(GROUP)
        return group is not None and app.name in group.members

    # What members do --------------------------------------------------------------------------------------------

    @rule(process=st.integers(0, 2), static=st.booleans(), reports=st.booleans())
    @precondition(lambda self: len(self.alive) + len(self.away) < 5)
    def join(self, process: int, static: bool, reports: bool) -> None:
        app = self.new_app(process, f"i{self.names}" if static else None, reports)
        app.join()
        assert not app.error
        self.alive.append(app)

    @rule(which=WHICH, heard=st.booleans())
    @precondition(lambda self: self.alive)
    def join_again(self, which: int, heard: bool) -> None:
        """As after a lost answer to a join, or a fencing."""
        app = self.alive[which % len(self.alive)]
        app.tasks = {}
        if heard:
            app.join()
            assert not app.error
        else:
            self.driver.send(app.join_request())
            app.epoch = 0

    @rule(which=WHICH, says=st.booleans(), heard=st.sampled_from([True, True, True, False]))
    @precondition(lambda self: self.alive)
    def beat(self, which: int, says: bool, heard: bool) -> None:
        app = self.alive[which % len(self.alive)]
        if app.epoch == 0:  # its join wasn't answered
            app.join()
            return
        request = app.request(**(app.owned() if says or app in self.unsure else {}))
        self.old.setdefault(app.name, []).append(request)
        if not heard:
            self.driver.send(request)
            self.unsure.append(app)
            return
        self.unsure = [other for other in self.unsure if other is not app]
        app.take(self.driver.send(request))
        assert not app.error

    @rule(rounds=st.integers(1, 3))
    def all_beat(self, rounds: int) -> None:
        for _ in range(rounds):
            for app in self.alive:
                app.full() if app.epoch > 0 else app.join()
                assert not app.error
        self.unsure.clear()

    @rule(which=WHICH, late=WHICH)
    @precondition(lambda self: self.alive)
    def late_request(self, which: int, late: int) -> None:
        """A request from an older epoch arrives after all; its answer finds nobody."""
        app = self.alive[which % len(self.alive)]
        epoch = self.driver.group.members[app.name].current.epoch if self.is_member(app) else 0
        requests = [request for request in self.old.get(app.name, ()) if request.member_epoch < epoch]
        if requests:
            self.driver.send(requests[late % len(requests)])

    @rule(which=WHICH, progress=st.integers(0, END))
    @precondition(lambda self: self.alive)
    def report(self, which: int, progress: int) -> None:
        self.tell_offsets(self.alive[which % len(self.alive)], progress)

    def tell_offsets(self, app: App, progress: int) -> None:
        """Members that report have restored so much of what they hold copies of."""
        if app.reports and app.epoch > 0:
            for task, role in app.tasks.items():
                if task.subtopology == "0":
                    app.ends[task] = END
                    app.offsets[task] = END if role is Role.ACTIVE else max(progress, app.offsets.get(task, 0))
            app.report(**app.owned())
            assert not app.error

    @rule(which=WHICH)
    @precondition(lambda self: self.alive)
    def leave(self, which: int) -> None:
        app = self.alive[which % len(self.alive)]
        if app.epoch > 0:
            app.leave()
            assert not app.error
            self.alive.remove(app)

    @rule(which=WHICH)
    @precondition(lambda self: any(app.instance is not None and app.epoch > 0 for app in self.alive))
    def go_for_a_while(self, which: int) -> None:
        static = [app for app in self.alive if app.instance is not None and app.epoch > 0]
        app = static[which % len(static)]
        app.leave(-2)
        assert not app.error
        self.alive.remove(app)
        self.away.append(app)

    @rule(which=WHICH, new_id=st.booleans())
    @precondition(lambda self: self.away)
    def come_back(self, which: int, new_id: bool) -> None:
        app = self.away.pop(which % len(self.away))
        if new_id:
            app = self.new_app(int(app.process[1:]), app.instance, app.reports)
        app.join()
        assert not app.error
        self.alive.append(app)

    @rule(which=WHICH)
    @precondition(lambda self: self.alive)
    def die(self, which: int) -> None:
        app = self.alive.pop(which % len(self.alive))
        for _ in range(6):
            self.driver.sleep(SESSION // 5)
            for other in self.alive:
                other.full() if other.epoch > 0 else other.join()
                assert not other.error
        self.unsure.clear()
        self.away.clear()
        assert not self.is_member(app)

    # What happens otherwise -------------------------------------------------------------------------------------

    @rule(ms=st.integers(0, 5_000))
    def time_passes(self, ms: int) -> None:
        self.driver.sleep(ms)
        for app in self.alive:
            if app.epoch > 0:
                app.full() if app in self.unsure else app.beat()

    @rule()
    def restart(self) -> None:
        self.driver.jobs.clear()
        self.driver.restart()

    @rule(fails=st.booleans())
    @precondition(lambda self: self.driver.jobs)
    def placed(self, fails: bool) -> None:
        self.driver.finish(fails=fails)

    @rule()
    def topic_grows(self) -> None:
        self.driver.topic("plain", self.driver.cluster.topics["plain"] % 4 + 1)

    @rule(standbys=st.integers(0, 2), warmups=st.integers(0, 2))
    def configure(self, standbys: int, warmups: int) -> None:
        self.driver.configure(num_standby_replicas=standbys, num_warmup_replicas=warmups)

    # What must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def one_owner_and_one_copy_a_process(self) -> None:
        owners: dict[TaskId, str] = {}
        copies: dict[tuple[str, TaskId], str] = {}
        for app in self.alive:
            if not self.is_member(app):
                continue
            for task, role in app.tasks.items():
                if role is Role.ACTIVE:
                    assert owners.setdefault(task, app.name) == app.name, task
                assert copies.setdefault((app.process, task), app.name) == app.name, task

    @invariant()
    def nobody_runs_what_it_does_not_hold(self) -> None:
        for app in self.alive:
            if self.is_member(app):
                current = self.driver.group.members[app.name].current
                held = [*current.assigned.items(), *current.revoking.items()]
                for task, role in app.tasks.items():
                    assert task in dict(held)
                    if role is Role.ACTIVE:
                        assert (task, role) in held

    @invariant()
    def epochs_only_rise(self) -> None:
        group = self.driver.shard.streams.get(GROUP) if hasattr(self, "driver") else None
        if group is not None:
            epochs = (group.epoch, group.assignment_epoch)
            assert epochs >= self.epochs and epochs[0] >= epochs[1] >= self.epochs[1]
            self.epochs = epochs

    @invariant()
    def the_log_tells_all(self) -> None:
        if hasattr(self, "driver"):
            assert self.driver.dump() == self.driver.dump(self.driver.replayed())

    @invariant()
    def ownership_is_what_members_hold(self) -> None:
        group = self.driver.shard.streams.get(GROUP) if hasattr(self, "driver") else None
        if group is not None:
            index: Ownership[TaskId, Role] = Ownership()
            for member_id, member in group.members.items():
                index.change(member_id, None, member.current)
            assert index._holders == group.ownership._holders

    def teardown(self) -> None:
        """Left alone, the group comes to rest at its target."""
        if not hasattr(self, "driver") or self.driver.shard.streams.get(GROUP) is None:
            return
        for app in self.away:
            app.join()
            self.alive.append(app)
        if not self.alive:
            return
        self.driver.elsewhere = False
        while self.driver.jobs:
            self.driver.finish()
        for _ in range(40):
            self.driver.sleep(5_000)
            for app in self.alive:
                if app.epoch <= 0:
                    app.join()
                app.full()
                assert not app.error
                if app.reports:
                    self.tell_offsets(app, END)
            group = self.driver.group
            if group.state.value == "Stable" and all(app.tasks == group.target.get(app.name, {}) for app in self.alive):
                break
        else:
            group = self.driver.group
            current = {name: member.current for name, member in group.members.items()}
            have = {app.name: app.tasks for app in self.alive}
            raise AssertionError(f"no rest: {group} {group.target=} {group.soft=} {current=} {have=}")
        active = sorted(task for app in self.alive for task, role in app.tasks.items() if role is Role.ACTIVE)
        plain = self.driver.cluster.topics["plain"]
        assert active == [*(TaskId("0", n) for n in range(3)), *(TaskId("1", n) for n in range(plain))], (
            self.driver.group,
            self.driver.dump(),
        )


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
