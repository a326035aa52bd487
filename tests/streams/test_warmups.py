from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.tasks import Role, TaskId
from kohort.streams.warmups import CurrentMember, Refined, refine

ACTIVE, STANDBY, WARMUP = Role
T = TaskId("state", 0)
T1 = TaskId("state", 1)
T2 = TaskId("state", 2)
PLAIN = TaskId("plain", 0)
END = 1000
LAG = 10

Tasks = Mapping[TaskId, Role]


class Group:
    """A group whose members m1, m2, … each have a process of their own, report, and have nothing on disk."""

    def __init__(self, **tasks: Tasks) -> None:
        self.holders = {name: CurrentMember(f"p-{name}", held) for name, held in tasks.items()}
        self.offsets = TaskOffsets()
        for name in tasks:
            self.report(name, {})

    def in_process(self, name: str, process: str) -> None:
        self.holders[name] = CurrentMember(process, self.holders[name].tasks, self.holders[name].revoking)
        self.offsets = self.offsets.forget(name)
        self.report(name, {})

    def silent(self, name: str) -> None:
        self.offsets = self.offsets.forget(name)

    def revoking(self, name: str, tasks: Tasks) -> None:
        self.holders[name] = CurrentMember(self.holders[name].process, self.holders[name].tasks, tasks)

    def report(self, name: str, offsets: Mapping[TaskId, int], ends: Mapping[TaskId, int] | None = None) -> None:
        ends = dict.fromkeys(offsets, END) if ends is None else ends
        self.offsets = self.offsets.report(name, self.holders[name].process, offsets, ends)

    def refine(self, slots: int = 2, **target: Tasks) -> Refined:
        return refine(target, self.holders, self.offsets, {"state"}, slots, LAG)


def test_a_group_at_its_target_stays_there() -> None:
    group = Group(m1={T: ACTIVE}, m2={T: STANDBY})
    target = {"m1": {T: ACTIVE}, "m2": {T: STANDBY}}
    refined = group.refine(m1=target["m1"], m2=target["m2"])
    assert refined == Refined(target)
    assert refined.tasks["m1"] is target["m1"]


def test_a_task_stays_with_its_owner_while_the_target_member_warms_up() -> None:
    group = Group(m1={T: ACTIVE}, m2={})
    refined = group.refine(m2={T: ACTIVE})
    assert refined == Refined({"m1": {T: ACTIVE}, "m2": {T: WARMUP}}, frozenset({T}))


@pytest.mark.parametrize(("offset", "moves"), [(END - LAG, True), (END - LAG - 1, False), (END + 5, True), (-2, True)])
def test_a_task_moves_when_the_lag_is_acceptable(offset: int, moves: bool) -> None:
    group = Group(m1={T: ACTIVE}, m2={T: WARMUP})
    group.report("m2", {T: offset})
    assert group.refine(m2={T: ACTIVE}).tasks["m2"] == {T: ACTIVE if moves else WARMUP}


@pytest.mark.parametrize("offset", [-4, -1, 2**63 - 1])
def test_offsets_that_say_nothing_move_nothing(offset: int) -> None:
    group = Group(m1={T: ACTIVE}, m2={T: WARMUP})
    group.report("m2", {T: offset})
    assert group.refine(m2={T: ACTIVE}).moving == {T}


def test_an_offset_without_any_known_end_moves_nothing() -> None:
    group = Group(m1={T: ACTIVE}, m2={T: WARMUP})
    group.report("m2", {T: 5}, {})
    assert group.refine(m2={T: ACTIVE}).moving == {T}


def test_stateless_tasks_move_at_once() -> None:
    group = Group(m1={PLAIN: ACTIVE}, m2={})
    assert group.refine(m2={PLAIN: ACTIVE}) == Refined({"m1": {}, "m2": {PLAIN: ACTIVE}})


def test_without_warmups_tasks_move_at_once() -> None:
    group = Group(m1={T: ACTIVE}, m2={})
    assert group.refine(slots=0, m2={T: ACTIVE}) == Refined({"m1": {}, "m2": {T: ACTIVE}})


def test_a_member_that_never_reports_gets_its_tasks_at_once() -> None:
    group = Group(m1={T: ACTIVE}, m2={})
    group.silent("m2")
    assert group.refine(m2={T: ACTIVE}).tasks["m2"] == {T: ACTIVE}


def test_a_copy_whose_member_never_reports_holds_nothing_up() -> None:
    group = Group(m1={T: ACTIVE}, m2={}, m3={T: STANDBY})
    group.in_process("m2", "p-m3")
    group.silent("m3")
    assert group.refine(m2={T: ACTIVE}).tasks["m2"] == {T: ACTIVE}


def test_a_task_moves_at_once_to_a_member_of_the_same_process() -> None:
    group = Group(m1={T: ACTIVE}, m2={})
    group.in_process("m2", "p-m1")
    assert group.refine(m2={T: ACTIVE}) == Refined({"m1": {}, "m2": {T: ACTIVE}})


def test_a_task_of_nobody_goes_where_the_target_has_it() -> None:
    group = Group(m1={}, m2={})
    assert group.refine(m2={T: ACTIVE}).tasks["m2"] == {T: ACTIVE}


def test_a_member_with_the_state_on_disk_gets_its_task_at_once() -> None:
    group = Group(m1={T: ACTIVE}, m2={})
    group.report("m2", {T: END - 1})
    assert group.refine(m2={T: ACTIVE}).tasks["m2"] == {T: ACTIVE}


def test_old_state_on_disk_is_compared_with_what_others_know_of_the_end() -> None:
    group = Group(m1={T: ACTIVE}, m2={})
    group.report("m1", {}, {T: 10 * END})
    group.report("m2", {T: END})
    assert group.refine(m2={T: ACTIVE}).tasks["m2"] == {T: WARMUP}


def test_a_warm_up_on_the_heels_of_a_busy_changelog_takes_over_though_others_have_seen_it_grow_since() -> None:
    group = Group(m1={T: ACTIVE}, m2={T: WARMUP})
    group.report("m2", {T: END})
    group.report("m1", {}, {T: 10 * END})
    assert group.refine(m2={T: ACTIVE}).tasks["m2"] == {T: ACTIVE}


def test_the_state_of_another_member_of_the_process_counts() -> None:
    group = Group(m1={T: ACTIVE}, m2={}, m3={T: STANDBY})
    group.in_process("m2", "p-m3")
    group.report("m3", {T: END})
    assert group.refine(m2={T: ACTIVE}).tasks == {"m1": {}, "m2": {T: ACTIVE}, "m3": {}}


def test_slots_are_for_the_whole_group() -> None:
    group = Group(m1={T: ACTIVE, T1: ACTIVE, T2: ACTIVE}, m2={}, m3={})
    refined = group.refine(slots=2, m2={T: ACTIVE, T1: ACTIVE}, m3={T2: ACTIVE})
    assert refined.tasks == {"m1": {T: ACTIVE, T1: ACTIVE, T2: ACTIVE}, "m2": {T: WARMUP, T1: WARMUP}, "m3": {}}


def test_a_free_slot_goes_to_the_task_with_the_least_lag() -> None:
    group = Group(m1={T: ACTIVE, T1: ACTIVE, T2: ACTIVE}, m2={})
    group.report("m2", {T1: 100, T2: 500})
    refined = group.refine(slots=1, m2={T: ACTIVE, T1: ACTIVE, T2: ACTIVE})
    assert refined.tasks["m2"] == {T2: WARMUP}


def test_who_has_a_slot_keeps_it() -> None:
    group = Group(m1={T: ACTIVE, T1: ACTIVE}, m2={T1: WARMUP})
    group.report("m2", {T: 500})
    assert group.refine(slots=1, m2={T: ACTIVE, T1: ACTIVE}).tasks["m2"] == {T1: WARMUP}


def test_fewer_slots_than_before_take_some_back() -> None:
    group = Group(m1={T: ACTIVE, T1: ACTIVE}, m2={T: WARMUP, T1: WARMUP})
    assert group.refine(slots=1, m2={T: ACTIVE, T1: ACTIVE}).tasks["m2"] == {T: WARMUP}


def test_a_slot_is_taken_until_the_member_has_let_go_of_the_warm_up() -> None:
    group = Group(m1={T: ACTIVE, T1: ACTIVE}, m2={}, m3={})
    group.revoking("m3", {T1: WARMUP})
    assert group.refine(slots=1, m1={T1: ACTIVE}, m2={T: ACTIVE}).tasks["m2"] == {}


def test_a_warm_up_that_was_lost_is_replaced() -> None:
    group = Group(m1={T: ACTIVE}, m3={})
    assert group.refine(m2={T: ACTIVE}).tasks == {"m1": {T: ACTIVE}, "m3": {}}
    assert group.refine(m3={T: ACTIVE}).tasks == {"m1": {T: ACTIVE}, "m3": {T: WARMUP}}


def test_a_target_that_changes_on_the_way_moves_the_warm_up() -> None:
    group = Group(m1={T: ACTIVE}, m2={T: WARMUP}, m3={})
    assert group.refine(m1={T: ACTIVE}).tasks == {"m1": {T: ACTIVE}, "m2": {}, "m3": {}}
    assert group.refine(m3={T: ACTIVE}).tasks == {"m1": {T: ACTIVE}, "m2": {}, "m3": {T: WARMUP}}


def test_a_standby_that_lags_stays_one_and_takes_no_slot() -> None:
    group = Group(m1={T: ACTIVE, T1: ACTIVE}, m2={T: STANDBY})
    group.report("m2", {T: 500})
    assert group.refine(slots=1, m2={T: ACTIVE, T1: ACTIVE}).tasks["m2"] == {T: STANDBY, T1: WARMUP}


def test_a_standby_beside_the_target_member_stays_until_it_is_caught_up() -> None:
    group = Group(m1={T: ACTIVE}, m2={}, m3={T: STANDBY})
    group.in_process("m2", "p-m3")
    assert group.refine(m2={T: ACTIVE}).tasks == {"m1": {T: ACTIVE}, "m2": {}, "m3": {T: STANDBY}}


def test_a_warm_up_beside_the_target_member_goes_on() -> None:
    group = Group(m1={T: ACTIVE}, m2={}, m3={T: WARMUP})
    group.in_process("m2", "p-m3")
    assert group.refine(m2={T: ACTIVE}).tasks == {"m1": {T: ACTIVE}, "m2": {}, "m3": {T: WARMUP}}


def test_a_standby_in_the_process_of_the_interim_owner_waits() -> None:
    group = Group(m1={T: ACTIVE}, m2={}, m3={})
    group.in_process("m3", "p-m1")
    refined = group.refine(m2={T: ACTIVE}, m3={T: STANDBY})
    assert refined.tasks == {"m1": {T: ACTIVE}, "m2": {T: WARMUP}, "m3": {}}


def test_an_owner_that_is_to_be_a_standby_goes_on_running_the_task() -> None:
    group = Group(m1={T: ACTIVE}, m2={})
    refined = group.refine(m1={T: STANDBY}, m2={T: ACTIVE})
    assert refined.tasks == {"m1": {T: ACTIVE}, "m2": {T: WARMUP}}


def test_a_standby_stays_in_place_of_one_that_has_to_wait() -> None:
    group = Group(m1={T: ACTIVE}, m2={}, m3={T: STANDBY}, m4={T: STANDBY})
    refined = group.refine(m1={T: STANDBY}, m2={T: ACTIVE})
    assert refined.tasks == {"m1": {T: ACTIVE}, "m2": {T: WARMUP}, "m3": {T: STANDBY}, "m4": {}}


def test_no_standby_stays_where_the_target_has_one_in_the_process() -> None:
    group = Group(m1={T: ACTIVE}, m2={}, m3={T: STANDBY}, m4={})
    group.in_process("m4", "p-m3")
    refined = group.refine(m1={T: STANDBY}, m2={T: ACTIVE}, m4={T: STANDBY})
    assert refined.tasks == {"m1": {T: ACTIVE}, "m2": {T: WARMUP}, "m3": {}, "m4": {T: STANDBY}}


def test_a_copy_that_is_caught_up_runs_the_task_of_an_owner_that_died() -> None:
    group = Group(m2={}, m3={T: STANDBY})
    group.report("m3", {T: END})
    refined = group.refine(m2={T: ACTIVE}, m3={T: STANDBY})
    assert refined == Refined({"m2": {T: WARMUP}, "m3": {T: ACTIVE}}, frozenset({T}))


def test_a_copy_that_lags_doesnt_run_the_task_of_an_owner_that_died() -> None:
    group = Group(m2={}, m3={T: STANDBY})
    group.report("m3", {T: 0})
    assert group.refine(m2={T: ACTIVE}, m3={T: STANDBY}).tasks == {"m2": {T: ACTIVE}, "m3": {T: STANDBY}}


def test_a_task_whose_target_member_left_stays_where_it_is() -> None:
    group = Group(m1={T: ACTIVE, PLAIN: ACTIVE}, m3={T: STANDBY})
    refined = group.refine(m2={T: ACTIVE, PLAIN: ACTIVE}, m3={T: STANDBY})
    assert refined.tasks == {"m1": {T: ACTIVE, PLAIN: ACTIVE}, "m3": {T: STANDBY}}


def test_tasks_that_nobody_is_to_have_are_given_up() -> None:
    group = Group(m1={T: ACTIVE, T1: ACTIVE}, m2={})
    assert group.refine(m1={T1: ACTIVE}).tasks == {"m1": {T1: ACTIVE}, "m2": {}}


class RestoringMembers:
    """Members that do as they are told, in their own time, and restore what they have copies of."""

    def __init__(self, members: Mapping[str, tuple[str, bool]], slots: int) -> None:
        self.processes = {name: process for name, (process, _) in members.items()}
        self.reporting = {name for name, (_, reports) in members.items() if reports}
        self.slots = slots
        self.target: dict[str, dict[TaskId, Role]] = {}
        self.tasks: dict[str, dict[TaskId, Role]] = {name: {} for name in members}
        self.revoking: dict[str, dict[TaskId, Role]] = {name: {} for name in members}
        self.disks: dict[tuple[str, TaskId], int] = {}
        self.offsets = TaskOffsets()

    def refined(self) -> Refined:
        holders = {
            name: CurrentMember(self.processes[name], dict(self.tasks[name]), dict(self.revoking[name]))
            for name in self.tasks
        }
        refined = refine(self.target, holders, self.offsets, {"state"}, self.slots, LAG)
        order = list(reversed(holders))
        turned = {name: self.target[name] for name in reversed(list(self.target))}
        again = refine(turned, {name: holders[name] for name in order}, self.offsets, {"state"}, self.slots, LAG)
        assert again == refined, "the order of members makes a difference"
        return refined

    def beat(self, name: str) -> None:
        """A heartbeat: report, confirm what was to be given up, take what there is to take."""
        self._restore(name)
        self.revoking[name] = {}
        wanted = self.refined().tasks[name]
        held = self.tasks[name]
        self.tasks[name] = {}
        for task, role in held.items():
            want = wanted.get(task)
            if want is None:
                self.revoking[name][task] = role
            elif want is ACTIVE and not self._free(name, task, want):
                self.tasks[name][task] = role
            else:
                self.tasks[name][task] = want
                if role is ACTIVE and want is not ACTIVE:
                    self.revoking[name][task] = ACTIVE
        for task, want in wanted.items():
            if task not in held and self._free(name, task, want):
                self.tasks[name][task] = want
        self.check()

    def check(self) -> None:
        held = [(task, role, name) for name in self.tasks for task, role in self._held(name)]
        running = [task for task, role, _ in held if role is ACTIVE]
        assert len(running) == len(set(running)), "two run a task"
        copies = {(task, name) for task, _, name in held}
        places = [(task, self.processes[name]) for task, name in copies]
        assert len(places) == len(set(places)), "two copies in a process"
        assert sum(role is WARMUP for _, role, _ in held) <= self.slots, "too many warm-ups"

    def check_refined(self) -> None:
        refined = self.refined()
        for task in {task for tasks in self.target.values() for task, role in tasks.items() if role is ACTIVE}:
            runs = [name for name, tasks in refined.tasks.items() if tasks.get(task) is ACTIVE]
            assert len(runs) == 1, "a task is for one member"
            places = [self.processes[name] for name, tasks in refined.tasks.items() if task in tasks]
            assert len(places) == len(set(places)), "two copies are for a process"
        assert sum(role is WARMUP for tasks in refined.tasks.values() for role in tasks.values()) <= self.slots

    def kill(self, name: str) -> None:
        del self.tasks[name], self.revoking[name]
        self.offsets = self.offsets.forget(name)

    def _held(self, name: str) -> set[tuple[TaskId, Role]]:
        return {*self.tasks[name].items(), *self.revoking[name].items()}

    def _free(self, name: str, task: TaskId, role: Role) -> bool:
        for other in self.tasks.keys() - {name}:
            for held, its in self._held(other):
                if held == task and (self.processes[other] == self.processes[name] or its is role is ACTIVE):
                    return False
        return True

    def _restore(self, name: str) -> None:
        process = self.processes[name]
        for task in self.tasks[name]:
            if task.subtopology == "state":
                self.disks[process, task] = min(self.disks.get((process, task), 0) + END // 4, END)
        if name in self.reporting:
            offsets = {task: offset for (place, task), offset in self.disks.items() if place == process}
            self.offsets = self.offsets.report(name, process, offsets, dict.fromkeys(self.tasks[name], END))


TASKS = [*(TaskId("state", partition) for partition in range(5)), PLAIN, TaskId("plain", 1)]


@st.composite
def histories(draw: st.DrawFn) -> RestoringMembers:
    """A group that went through target changes, heartbeats and deaths, and whose target is now final."""
    members = {
        f"m{number}": (f"p{draw(st.integers(0, 3))}", draw(st.integers(0, 4)) > 0)
        for number in range(draw(st.integers(1, 6)))
    }
    world = RestoringMembers(members, draw(st.integers(1, 3)))

    def retarget() -> None:
        world.target = {name: {} for name in world.tasks}
        for task in TASKS:
            order = draw(st.permutations(sorted(world.tasks)))
            world.target[order[0]][task] = ACTIVE
            taken = {world.processes[order[0]]}
            for name in order[1 : 1 + draw(st.integers(0, 2))] if task.subtopology == "state" else ():
                if world.processes[name] not in taken:
                    taken.add(world.processes[name])
                    world.target[name][task] = STANDBY

    for _ in range(draw(st.integers(1, 3))):
        retarget()
        for _ in range(draw(st.integers(0, 12))):
            world.beat(draw(st.sampled_from(sorted(world.tasks))))
        if len(world.tasks) > 1 and draw(st.booleans()):
            world.kill(draw(st.sampled_from(sorted(world.tasks))))
            world.check()
    retarget()
    return world


@settings(max_examples=60, deadline=None)
@given(histories())
def test_left_alone_a_group_comes_to_its_target(world: RestoringMembers) -> None:
    for _ in range(60):
        if world.tasks == world.target and not any(world.revoking.values()):
            break
        world.check_refined()
        for name in sorted(world.tasks):
            world.beat(name)
    assert world.tasks == world.target


def test_a_task_is_run_all_the_time_while_it_moves() -> None:
    world = RestoringMembers({"m1": ("p1", True), "m2": ("p2", True)}, slots=1)
    world.target = {"m1": {T: ACTIVE}, "m2": {}}
    world.beat("m1")
    world.target = {"m1": {}, "m2": {T: ACTIVE}}
    roles = []
    for _ in range(8):
        for name in ("m1", "m2"):
            world.beat(name)
            roles.append((world.tasks["m1"].get(T), world.tasks["m2"].get(T)))
    stopped = [roles.index(pair) for pair in roles if ACTIVE not in pair]
    assert len(set(stopped)) <= 1, "it rests only between the heartbeats that hand it over"
    assert roles[-1] == (None, ACTIVE)
    assert world.disks["p2", T] >= END - LAG
