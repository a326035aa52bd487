"""A classic streams group in virtual time: a coordinator that hands bytes around, and members of several releases.

What members do is what the documentation of `Assignment` asks for; they are slow to hear of rebalances, to get their
assignments, to close tasks and to restore state, by a seeded generator. After each event no task may have two owners.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from kohort.client.streams.classic.assignment import decode_assignment
from kohort.client.streams.classic.leader import lead
from kohort.client.streams.classic.leader_memory import LeaderMemory
from kohort.client.streams.classic.led_group import JoinedMember, LeaderSettings
from kohort.client.streams.classic.subscription import Subscription, encode_subscription
from kohort.client.streams.classic.versions import ErrorCode, version_to_join_with
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import InternalTopic, Subtopology, Topology

from .topics import Topics

END = 1000  # records of each task's changelog
SESSION_TIMEOUT = 10.0
PARTITIONS = 4

TOPOLOGY = Topology(
    {
        "0": Subtopology(source_topics=["words"], repartition_sinks=["by-word"]),
        "1": Subtopology(
            repartition_sources=[InternalTopic("by-word")],
            changelogs=[InternalTopic("counts"), InternalTopic("latest")],
        ),
    }
)
TASKS = {TaskId(name, partition) for name in "01" for partition in range(PARTITIONS)}


class Disk:
    """What outlives a process: how far the state of each task has been restored."""

    def __init__(self) -> None:
        self.offsets: dict[TaskId, int] = {}


class Process:
    """A running member.

    Attributes:
        tasks: what it runs or has copies of.
        closing: active tasks that it is closing.
        garbled: what it writes has an end that nobody can read.
        stubborn: it goes on writing its newest version, whatever its leader says.
    """

    def __init__(self, world: World, name: str, latest: int, disk: Disk, instance_id: str | None) -> None:
        self.world, self.name, self.latest, self.disk, self.instance_id = world, name, latest, disk, instance_id
        self.version = latest
        self.tasks: dict[TaskId, Role] = {}
        self.closing: set[TaskId] = set()
        self.alive, self.garbled, self.stubborn = True, False, False
        self.memory = LeaderMemory()
        self._leader_version = 0
        self._wanted = 0
        self._probe = 0
        self._awaited = False

    def owned(self) -> set[TaskId]:
        return self.closing | {task for task, role in self.tasks.items() if role is Role.ACTIVE}

    def subscription(self) -> JoinedMember:
        self._awaited = False
        self._probe += 1
        has = {**self.tasks, **dict.fromkeys(self.closing, Role.ACTIVE)}
        said = Subscription(
            tasks=has,
            state_stores={task: 2 * int(task.subtopology) for task in has},
            offsets=self.disk.offsets,
            ends=dict.fromkeys(self.disk.offsets, END),
            process_id=f"process of {self.name}",
            topology=TOPOLOGY,
        )
        version = self.latest if self.stubborn else self.version
        data = encode_subscription(said, version, self.latest, self._wanted, self._leader_version)
        return JoinedMember(self.name, self.instance_id, data[:-1] if self.garbled else data)

    def rebalance(self) -> None:
        """Joins with another subscription than before, so that the group rebalances."""
        self._wanted += 1
        self.world.rebalance(self)

    def assigned(self, data: bytes) -> None:
        """Takes an assignment, which a member that was replaced under its instance id may have left behind."""
        try:
            answer = decode_assignment(data, self.latest)
        except ValueError:
            return self.rebalance()
        version = version_to_join_with(self.version, answer.version, answer.supported, answer.common, self.latest)
        self._leader_version = answer.supported
        if version is not None:
            self.version = version
        if answer.error is ErrorCode.SUBSCRIPTION_TOO_NEW:
            return self.rebalance()
        before, self.tasks = self.tasks, dict(answer.tasks)
        for task, role in before.items():
            if role is Role.ACTIVE and self.tasks.get(task) is not Role.ACTIVE:
                self.closing.add(task)
                self.world.after(0.1, 8, lambda task=task: self._closed(task))
        for task in self.tasks:
            if task.subtopology == "1" and self.disk.offsets.setdefault(task, 0) < END:
                self.world.after(1, 20, lambda task=task: self._restored(task))
        self._awaited = answer.join_again
        if version is not None or (self._awaited and not self.closing):
            self.rebalance()
        elif answer.probing_ms is not None:
            self._probe += 1
            self.world.after(answer.probing_ms / 1000, None, lambda number=self._probe: self._look_again(number))
        return None

    def _closed(self, task: TaskId) -> None:
        self.closing.discard(task)
        if not self.closing and self._awaited:
            self.rebalance()

    def _restored(self, task: TaskId) -> None:
        if task in self.tasks and self.disk.offsets[task] < END:
            self.disk.offsets[task] = END
            if self.tasks[task] is Role.WARMUP:
                self.rebalance()

    def _look_again(self, number: int) -> None:
        if number == self._probe:
            self.rebalance()


class World:
    """The coordinator, its group, and time."""

    def __init__(self, seed: int | str, settings: LeaderSettings) -> None:
        self.random = random.Random(seed)
        self.settings = settings
        self.topics = Topics(words=PARTITIONS, counts=PARTITIONS, latest=PARTITIONS)
        self.topics.counts["by-word"] = PARTITIONS
        self.now = 0.0
        self.rebalances = 0
        self.members: dict[str, Process] = {}
        self._events: list[tuple[float, int, Process | None, Callable[[], None]]] = []
        self._order = itertools.count()
        self._names = itertools.count()
        self._leader = ""
        self._generation = 0
        self._joined: dict[str, JoinedMember] | None = None
        self._said: dict[str, JoinedMember] = {}
        self._assignments: Mapping[str, bytes] = {}

    # Time ----------------------------------------------------------------------------------------------------

    def after(self, least: float, most: float | None, what: Callable[[], None]) -> None:
        delay = least if most is None else self.random.uniform(least, most)
        heapq.heappush(self._events, (self.now + delay, next(self._order), None, what))

    def run(self, until: float = float("inf")) -> None:
        """Lets time pass, until nothing is left to happen."""
        while self._events and self._events[0][0] <= until:
            self.now, _, _, what = heapq.heappop(self._events)
            what()
            self.check()
            assert self.rebalances < 400, "the group doesn't come to rest"
        self.now = max(self.now, until) if until < float("inf") else self.now

    def check(self) -> None:
        owners: dict[TaskId, list[str]] = {}
        for process in self.members.values():
            for task in process.owned() if process.alive else ():
                owners.setdefault(task, []).append(process.name)
        assert all(len(names) == 1 for names in owners.values()), (self.now, owners)

    # Members -------------------------------------------------------------------------------------------------

    def start(self, latest: int, disk: Disk | None = None, instance_id: str | None = None) -> Process:
        process = Process(self, f"{next(self._names)}", latest, disk or Disk(), instance_id)
        replaced = next((p for p in self.members.values() if instance_id and p.instance_id == instance_id), None)
        self.members[process.name] = process
        if replaced is not None:
            del self.members[replaced.name]
            if self._joined is None and replaced.name in self._assignments:
                # The coordinator answers a static member that is back without a rebalance.
                self._leader = process.name if self._leader == replaced.name else self._leader
                self._assignments = {**self._assignments, process.name: self._assignments[replaced.name]}
                self._said[process.name] = process.subscription()
                self._deliver(process)
                return process
            if self._joined is not None:
                self._joined.pop(replaced.name, None)
        self.rebalance(process)
        return process

    def stop(self, process: Process, *, crash: bool) -> None:
        """Ends a member; nobody hears of a crash, or that a static member is gone, before its session timeout."""
        process.alive = False
        if crash or process.instance_id is not None:
            self.after(SESSION_TIMEOUT, None, lambda: self._removed(process))
        else:
            self._removed(process)

    def _removed(self, process: Process) -> None:
        if self.members.pop(process.name, None) is not None:
            if self._joined is not None:
                self._joined.pop(process.name, None)
                self._complete()
            elif self.members:
                self._prepare()

    def _alive(self, process: Process, what: Callable[[], None]) -> Callable[[], None]:
        return lambda: what() if process.alive else None

    # Rebalances ----------------------------------------------------------------------------------------------

    def rebalance(self, process: Process) -> None:
        """Takes a member's join, which changes nothing if it isn't the leader's, and says what it said before."""
        if process.alive and process.name in self.members:
            said = process.subscription()
            if self._joined is None and process.name != self._leader and self._said.get(process.name) == said:
                self._deliver(process)
                return
            self._prepare()
            self._join(process)

    def _prepare(self) -> None:
        if self._joined is None:
            self._joined = {}
            for each in self.members.values():
                self.after(0, 3, self._alive(each, lambda each=each: self._join(each)))

    def _join(self, process: Process) -> None:
        if self._joined is not None and process.name not in self._joined and process.name in self.members:
            self._joined[process.name] = self._said[process.name] = process.subscription()
            self._complete()

    def _complete(self) -> None:
        """Lets the leader assign once all have joined; some get that late, and some not before the next rebalance."""
        joined = self._joined
        if not joined or joined.keys() != self.members.keys():
            return
        self._joined = None
        self.rebalances += 1
        self._generation += 1
        if self._leader not in joined:
            self._leader = next(iter(joined))
        leader = self.members[self._leader]
        settings = replace(self.settings, latest=leader.latest)
        static = leader.memory.recalled(self._generation)
        result = lead(list(joined.values()), leader.name, TOPOLOGY, self.topics, settings, static)
        leader.memory.keep(self._generation, result.static)
        self._assignments = result.assignments
        for process in self.members.values():
            self._deliver(process)

    def _deliver(self, process: Process) -> None:
        """Gives a member its assignment, a little later; not if it has joined again until then."""
        generation, data = self._generation, self._assignments[process.name]

        def assigned() -> None:
            if self._generation == generation and not (self._joined and process.name in self._joined):
                process.assigned(data)

        self.after(0, 2, self._alive(process, assigned))
