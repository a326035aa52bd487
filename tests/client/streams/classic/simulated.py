"""Members of classic streams groups and our coordinator in virtual time, with requests and answers that get lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any
from uuid import UUID

from kohort.client.backoff import Backoff
from kohort.client.streams.classic.leader import lead
from kohort.client.streams.classic.leader_memory import LeaderMemory
from kohort.client.streams.classic.led_group import JoinedMember
from kohort.client.streams.classic.membership import ClassicMembership
from kohort.client.streams.classic.settings import ClassicSettings
from kohort.client.streams.settings import MemberSettings
from kohort.client.streams.transitions import State
from kohort.protocol.messages.join_group import JoinGroupRequest
from kohort.protocol.messages.leave_group import LeaveGroupRequest
from kohort.protocol.messages.sync_group import SyncGroupRequest
from kohort.streams.tasks import Role
from tests.client.membership.simulated import Classic
from tests.client.streams.simulated_tasks import ALL, STEP_MS, TOPOLOGY, SimulatedTasks

GROUP = "app"
ANSWER_WITHIN_MS = 2_000


class Topics:
    """All topics of the topology, with four partitions each."""

    def partitions(self, topic: str) -> int | None:
        return 4 if topic in TOPOLOGY.required_topics else None

    def topic_id(self, topic: str) -> UUID | None:
        return UUID(int=1) if topic in TOPOLOGY.required_topics else None

    def matching(self, pattern: str) -> Sequence[str]:
        return ()


class Application(SimulatedTasks):
    """A member, and an application that takes its time. `has` is what it really does.

    Attributes:
        garbled: what it writes has an end that nobody can read.
    """

    def __init__(
        self, world: SimulatedGroup, name: str, process: str, instance_id: str | None, settings: ClassicSettings
    ) -> None:
        self.world, self.name, self.process, self.settings = world, name, process, settings
        self.member = ClassicMembership(
            MemberSettings(
                group_id=GROUP,
                topology=TOPOLOGY,
                member_id="unused",
                process_id=process,
                instance_id=instance_id,
                rebalance_timeout_ms=60_000,
            ),
            Backoff(100, 1_000, world.random),
            settings,
            leave_within_ms=5_000,
        )
        super().__init__(world, self.member)
        self.inbox: list[Any] = []
        self.request: Any = None
        self.missed_at: int | None = None
        self.places_at: int | None = None
        self.memory = LeaderMemory()
        self.garbled = False
        self.member.begin(world.now)

    def step(self) -> None:
        if self.world.random.random() < self.world.looks:
            self.take_events()
        self.work()
        now, member = self.world.now, self.member
        if self.request is not None:
            self.hear()
        elif member.subscriptions is not None:
            self.place()
        elif (due := member.due_at) is not None and due <= now:
            self.ask()

    def ask(self) -> None:
        now, fate = self.world.now, self.world.random.random()
        call = self.member.call(now)
        self.request, self.inbox = self.member.request(now, call.request.__message__.versions[-1]), []
        if self.garbled and isinstance(self.request, JoinGroupRequest):
            (protocol,) = self.request.protocols
            protocol.metadata = protocol.metadata[:-1]
        self.world.counts[call.request.__name__] += 1
        self.missed_at = None
        if fate < self.world.losses:
            self.world.counts["faults"] += 1
            self.missed_at = now + self.world.random.randrange(ANSWER_WITHIN_MS)
            if fate < self.world.losses / 2:
                return
        inbox = self.inbox
        self.world.coordinator.ask(self.request, inbox.append)

    def hear(self) -> None:
        now = self.world.now
        gives_up = self.member.state is State.DEPARTING and not isinstance(self.request, LeaveGroupRequest)
        if gives_up or (self.missed_at is not None and self.missed_at <= now):
            self.request = None
            self.member.on_failure(now)
        elif self.inbox and self.missed_at is None:
            request, self.request = self.request, None
            if isinstance(request, SyncGroupRequest):
                self.world.counts["synced"] += 1
            self.member.on_response(self.inbox[0], now)

    def place(self) -> None:
        now, member = self.world.now, self.member
        if self.places_at is None:
            self.places_at = now + self.world.random.randrange(500)
        if now < self.places_at:
            return
        self.places_at = None
        members = [
            JoinedMember(name, member.instances.get(name), data) for name, data in (member.subscriptions or {}).items()
        ]
        static = self.memory.recalled(member.epoch)
        answer = lead(members, member.member_id, TOPOLOGY, Topics(), self.settings, static)
        self.memory.keep(member.epoch, answer.static)
        member.placed(answer.assignments, now)

    def die(self) -> None:
        """Stop without a word."""
        self.world.applications.remove(self)


class SimulatedGroup:
    """Steps of `STEP_MS`, all choices drawn from one generator."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.random = Random(seed)
        self.coordinator = Classic()
        self.settings = {"session_timeout_ms": 15_000, "heartbeat_interval_ms": 1_000, **settings}
        self.applications: list[Application] = []
        self.started = 0
        self.in_a_process = 2  # members; before version 3 they can't say that they are
        self.losses = 0.1
        self.close_ms = 0
        self.looks = self.random.choice((0.3, 0.03))  # how often applications ask for events
        self.counts: Counter[str] = Counter()

    @property
    def now(self) -> int:
        return self.coordinator.now

    def start(self, instance_id: str | None = None, **settings: Any) -> Application:
        process = f"p{self.started // self.in_a_process if instance_id is None else instance_id}"
        own = ClassicSettings(**(self.settings | settings))
        self.applications.append(Application(self, f"m{self.started}", process, instance_id, own))
        self.started += 1
        return self.applications[-1]

    def run(self, ms: int) -> None:
        for _ in range(ms // STEP_MS):
            self.coordinator.pass_time(STEP_MS)
            for application in list(self.applications):
                application.step()
            for application in [one for one in self.applications if one.member.ended]:
                application.take_events()
                self.applications.remove(application)
            self.check()

    def members(self) -> set[str]:
        return set(self.coordinator.driver.members(GROUP))

    def check(self) -> None:
        """Among members of the group, nobody has what another has. Who was thrown out may not know it yet."""
        members = self.members()
        inside = [
            one
            for one in self.applications
            if one.member.member_id in members and one.member.state is not State.FENCED and one.member.epoch
        ]
        running = Counter(task for one in inside for task, role in one.has.items() if role is Role.ACTIVE)
        assert not running or max(running.values()) == 1, running
        copies = Counter((one.process, task) for one in inside for task in one.has)
        assert not copies or max(copies.values()) == 1, copies

    def comes_to_rest(self, within_ms: int = 120_000) -> None:
        self.losses = 0.0
        self.run(within_ms)
        assert all(one.at_peace for one in self.applications), [
            (one.name, one.member.state, one.member.phase) for one in self.applications
        ]
        assert len({one.member.epoch for one in self.applications}) == 1
        running = [task for one in self.applications for task, role in one.has.items() if role is Role.ACTIVE]
        assert sorted(running) == sorted(ALL)
