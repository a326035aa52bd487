"""Network, coordinator and topics of a simulated world. Nothing in it is random but by its generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from kohort.coordinator.placement.model import Placement
from kohort.coordinator.shard import GroupSettings, GroupShard, value_version
from kohort.coordinator.step import Step, append_error
from kohort.coordinator.streams.environment import PlacementJob, StreamsEnvironment
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.protocol.stored import OFFSETS_TOPIC, record_type
from kohort.streams.tasks import TaskId
from tests.coordinator.streams.snapshots import snapshot
from tests.simulation.books import InvariantError
from tests.simulation.coordinator_world import START, CoordinatorWorld
from tests.simulation.streams.application import Application
from tests.simulation.streams.changelogs import Changelog
from tests.simulation.streams.checker import Checker
from tests.simulation.streams.cluster import Topics
from tests.simulation.streams.member import Member, nothing_new
from tests.simulation.streams.placement_checks import PlacementChecks
from tests.simulation.streams.replay import compare

REQUEST_TIMEOUT_MS = 10_000
RECONNECT_MS = 200


@dataclass
class Faults:
    """How likely a heartbeat meets each fault, and how long delayed ones take, in ms.

    A request doesn't overtake later ones of its member: these have one at a time under way, on one connection. So a
    heartbeat that comes twice comes twice in a row. A stray one comes from nowhere, with an impossible epoch.
    """

    lost: float = 0.01
    answer_lost: float = 0.02
    duplicated: float = 0.02
    delayed: float = 0.04
    stray: float = 0.002
    delay_ms: int = 4_000

    def draw(self, rng: Random) -> str:
        """What becomes of a heartbeat."""
        weights = (self.lost, self.answer_lost, self.duplicated, self.delayed)
        if rng.random() > sum(weights):
            return "smooth"
        return rng.choices(("lost", "answer lost", "duplicated", "delayed"), weights)[0]


@dataclass
class Solver:
    """Who places tasks: how often elsewhere, not at once, how long that takes at most, and how often it fails."""

    elsewhere: float = 0.5
    delay_ms: int = 3_000
    failing: float = 0.1


@dataclass
class State:
    """How much state tasks have: records they begin with and records/s that come, at most; records/s restored."""

    records: int = 100_000
    rate: int = 200
    restored: int = 20_000


class StreamsWorld(CoordinatorWorld):
    """Members' heartbeats go in, and their answers come out, if nothing gets lost."""

    def __init__(self, rng: Random, *, faults: Faults | None = None, solver: Solver | None = None) -> None:
        super().__init__(remembered=300)
        self.rng = rng
        self.faults = faults
        self.solver = solver or Solver(elsewhere=0)
        self.state = State()
        self.start = START
        self.topics = Topics()
        self.settings: dict[str, StreamsSettings] = {}
        self.members: dict[str, Member] = {}
        self.rebalance_timeouts: dict[str, int] = {}
        self.applications: dict[tuple[str, int], Application] = {}
        self.fatal: Callable[[Member, ErrorCode, str | None], None] = unexpected
        self.on_run: Callable[[str, TaskId, int], None] = lambda group_id, task, change: None
        self.append_error: ErrorCode | None = None
        self.commits = 0.02
        self.thorough = (
            1  # every how many steps live and replayed state are compared; with more, what is slow is left out
        )
        self.counts: Counter[str] = Counter()
        self._changelogs: dict[tuple[str, TaskId], Changelog] = {}
        self._runners: Counter[tuple[str, TaskId]] = Counter()
        self.untold_topics: set[str] = set()
        self._missing: set[str] = set()
        self._steps = 0
        self.shard = self._new_shard(self.wheel)
        self.shadow = self._new_shard(TimingWheel(self.now))
        self.checker = Checker(self)
        self.placement_checks = PlacementChecks(self)
        self.shard.loaded(self.now)

    @property
    def elapsed(self) -> int:
        return self.now - self.start

    def _new_shard(self, wheel: TimingWheel) -> GroupShard:
        environment = StreamsEnvironment(self.settings_of, self.topics, self._place)
        return GroupShard(0, GroupSettings(), wheel, self.new_id, environment)

    def settings_of(self, group_id: str) -> StreamsSettings:
        return self.settings[group_id]

    def new_id(self, name: str) -> str:
        self.counts["ids"] += 1
        return f"{name}-{self.counts['ids']}"

    def application(self, group_id: str, epoch: int) -> Application:
        """An application, as of a topology epoch."""
        return self.applications[group_id, epoch]

    # State ------------------------------------------------------------------------------------------------------

    def changelog(self, group_id: str, task: TaskId) -> Changelog:
        """A task's changelog."""
        changelog = self._changelogs.get((group_id, task))
        if changelog is None:
            records, rate = self.rng.randrange(1 + self.state.records), self.rng.randrange(1 + self.state.rate)
            changelog = self._changelogs[group_id, task] = Changelog(records, rate, self.state.restored)
        return changelog

    def runs(self, group_id: str, task: TaskId, change: int) -> None:
        """A task runs on a member more, or on one less."""
        self._runners[group_id, task] += change
        self.on_run(group_id, task, self._runners[group_id, task])

    def runners(self, group_id: str, task: TaskId) -> int:
        """Members that run a task."""
        return self._runners[group_id, task]

    def restored(self) -> int:
        """Records that copies, now closed, lacked when they were opened, and took in."""
        return sum(changelog.restored for changelog in self._changelogs.values())

    # Network ----------------------------------------------------------------------------------------------------

    def heartbeat(
        self,
        member: Member,
        request: StreamsGroupHeartbeatRequest,
        answered: Callable[[StreamsGroupHeartbeatResponse], object],
        missed: Callable[[], object],
    ) -> None:
        """Send a heartbeat through the network; `missed` is called when the member gives up waiting for an answer."""
        self.members.setdefault(member.member_id, member)
        self.applications[member.group_id, member.application.epoch] = member.application
        self.rebalance_timeouts[member.member_id] = member.habits.rebalance_ms
        if self.faults is not None and self.rng.random() < self.faults.stray:
            self._stray(member)
        fate = "smooth" if self.faults is None else self.faults.draw(self.rng)
        if fate == "smooth":
            self._deliver(member, request, answered, missed)
            return
        assert self.faults is not None
        self.note(fate, member)
        if fate in ("lost", "answer lost"):
            self.after(REQUEST_TIMEOUT_MS, missed)
            if fate == "answer lost":
                self._deliver(member, request, None, missed)
        elif fate == "duplicated":
            self._deliver(member, request, answered, missed)
            self._deliver(member, request, None, missed)
        else:
            delay = self.rng.randrange(self.faults.delay_ms)
            self.after(delay, lambda: self._deliver(member, request, answered, missed))

    def _stray(self, member: Member) -> None:
        """Somebody sends a heartbeat in a member's name, on an epoch that it can't have."""
        epoch = self.checker.stray_epoch(member.group_id, member.member_id)
        if self.up and epoch is not None:
            request = nothing_new(member.group_id, member.member_id, epoch)
            if self.rng.random() < 0.5:
                request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
            self._deliver(member, request, None, lambda: None)

    def _deliver(
        self,
        member: Member,
        request: StreamsGroupHeartbeatRequest,
        answered: Callable[[StreamsGroupHeartbeatResponse], object] | None,
        missed: Callable[[], object],
    ) -> None:
        if not self.up:
            self.after(RECONNECT_MS, missed)
            return
        self.counts["heartbeats"] += 1
        answers: list[StreamsGroupHeartbeatResponse] = []

        def reply(result: Any) -> None:
            response = result.response
            answers.append(response)
            self.note(request, response)
            if self.counts["heartbeats"] % 16 == 0:
                self._check_bytes(request, response, member.client.version)
            if not response.error_code and request.member_epoch >= 0:
                self.checker.state_reuse.reported(request)
            if answered is not None:
                self.after(self._way_back(), lambda: answered(response))
            if result.missing_topics:
                self._create_internal(result.missing_topics)

        expected = self.checker.verdict(request)
        before, failed = None if self.append_error is None else snapshot(self.shard), self.counts["failed appends"]
        step = self.shard.streams.heartbeat(request, member.client, self.now, reply)
        self.perform(step, request)
        if self.counts["failed appends"] > failed and before != snapshot(self.shard):
            raise InvariantError(f"records couldn't be appended, and yet something has changed: {request}")
        if len(answers) != 1:
            raise InvariantError(f"answered {len(answers)} times: {request}")
        code = ErrorCode(answers[0].error_code)
        if expected and code not in expected and self.append_error is None:
            raise InvariantError(f"{member} got {code.name} instead of {expected}: {request}")
        self.checker.answered(request, answers[0], member if answered is not None else None)

    def _check_bytes(
        self, request: StreamsGroupHeartbeatRequest, response: StreamsGroupHeartbeatResponse, version: int
    ) -> None:
        """Both come through the wire as they are, but for what the version doesn't have."""
        for message in (request, response):
            sent = message.encode(version)
            if type(message).decode(sent, version).encode(version) != sent:
                raise InvariantError(f"another message comes out of the wire than {message}")

    def _way_back(self) -> int:
        if self.faults is not None and self.rng.random() < self.faults.delayed:
            return self.rng.randrange(self.faults.delay_ms)
        return 0

    def commit(self, member: Member, task: TaskId, request: OffsetCommitRequest) -> None:
        """Commit an offset for a task."""
        if not self.up:
            return

        def reply(response: Any) -> None:
            code = ErrorCode(response.topics[0].partitions[0].error_code)
            self.note("commit", member, task, code)
            self.checker.commit_answered(member, task, request, code)

        self.counts["commits"] += 1
        client = member.client._replace(version=9)
        self.perform(self.shard.offsets.commit(request, client, self.now, reply))

    # Topics -----------------------------------------------------------------------------------------------------

    def topics_changed(self, names: Iterable[str]) -> None:
        """Topics were created, deleted, or grew: the coordinator learns of it a moment later."""
        if not self.untold_topics:
            self.after(self.rng.randrange(100), self._tell_of_topics)
        self.untold_topics.update(names)

    def _tell_of_topics(self) -> None:
        names = sorted(self.untold_topics)
        self.untold_topics.clear()
        if self.up:
            self.note("topics changed", names)
            self.perform(self.shard.streams.topics_changed(names))

    def _create_internal(self, topics: Iterable[Any]) -> None:
        """Create internal topics as the broker does when an answer says that they are missing."""
        topics = [topic for topic in topics if topic.name not in self._missing]
        if topics:
            self._missing.update(topic.name for topic in topics)
            self.after(self.rng.randrange(500), lambda: self._created(topics))

    def _created(self, topics: list[Any]) -> None:
        for topic in topics:
            self._missing.discard(topic.name)
            self.topics.create(topic.name, topic.partitions)
        self.topics_changed(topic.name for topic in topics)

    # Placement --------------------------------------------------------------------------------------------------

    def _place(self, job: PlacementJob) -> Placement | None:
        self.note("place", job.group_id, job.group_epoch)
        self.counts["placements"] += 1
        self.placement_checks.asked(job)
        if self.rng.random() >= self.solver.elsewhere:
            return self.placement_checks.solve(job)
        self.after(self.rng.randrange(self.solver.delay_ms), partial(self._placed, self.shard, job))
        return None

    def _placed(self, shard: GroupShard, job: PlacementJob) -> None:
        if shard is not self.shard or not self.up:
            return
        placement = None if self.rng.random() < self.solver.failing else self.placement_checks.solve(job)
        self.note("placed", job.group_id, job.group_epoch, placement is not None)
        self.perform(shard.streams.placed(job, placement, self.now))

    # Coordinator ------------------------------------------------------------------------------------------------

    def perform(self, step: Step, cause: StreamsGroupHeartbeatRequest | None = None) -> None:
        """Do what the coordinator decided, because of a heartbeat or by itself: append, replay, apply, answer."""
        if step.records and self.append_error is not None:
            self.note("not appended", self.append_error)
            self.counts["failed appends"] += 1
            self.placement_checks.failed()
            if step.failed is not None:
                self.perform(step.failed(append_error(self.append_error)))
                return
        else:
            self._append(step)
            if step.apply is not None:
                step.apply()
        for reply, response in step.answers:
            reply(response)
        self._stepped(cause)
        self._drain()

    def _append(self, step: Step) -> None:
        for key, value in step.records:
            kind = record_type(OFFSETS_TOPIC, key.__message__.key)
            raw_key = kind.encode_key(key)
            self.log.pop(raw_key, None)  # compaction keeps the latest, where it was written
            if value is not None:
                self.log[raw_key] = kind.encode_value(value, value_version(value))
            self.note("record", key, value)
            self.checker.ledger.append(key, value)
            self._replay(self.shadow, raw_key)
        for key, value in step.records:
            self.shard.replay(key, value, step.producer)

    def _stepped(self, cause: StreamsGroupHeartbeatRequest | None) -> None:
        changed = list(dict.fromkeys(group_id for group_id, _ in self.checker.ledger.touched))
        self.checker.stepped(cause)
        self.placement_checks.stepped()
        self._steps += bool(changed)
        if self._steps % self.thorough == 0:
            for group_id in changed:
                compare(group_id, self.shard, self.shadow)

    def stop_coordinator(self, gracefully: bool) -> None:
        """End the coordinator."""
        if not self.up:
            return
        self.note("stop", gracefully)
        if gracefully:
            self.perform(self.shard.unload(self.now))
        self.up = False
        self.wheel = TimingWheel(self.now)

    def start_coordinator(self) -> None:
        """Begin anew with what the log has."""
        if self.up:
            return
        self.counts["restarts"] += 1
        self.shard = self._new_shard(self.wheel)
        for raw_key in self.log:
            self._replay(self.shard, raw_key)
        self.note("start")
        for group_id in self.settings:
            compare(group_id, self.shard, self.shadow)
        self.up = True
        self.checker.started()
        self.shard.loaded(self.now)
        self._drain()

    def delete_group(self, group_id: str) -> None:
        """An administrator tries to delete a group, which works if it is empty, and leaves nothing of it."""
        if not self.up or self.append_error is not None:
            return
        group, answers = self.checker.ledger.group(group_id), list[Any]()
        expected = ErrorCode.GROUP_ID_NOT_FOUND if self.shard.streams.get(group_id) is None else ErrorCode.NONE
        expected = ErrorCode.NON_EMPTY_GROUP if group.current else expected
        self.perform(self.shard.delete_groups([group_id], answers.append))
        if [result.error_code for result in answers[0]] != [expected]:
            raise InvariantError(f"deleting {group_id} came to {answers}, not {expected.name}")
        if not expected and (group.epoch, group.assignment_epoch, group.topology, group.target) != (-1, -1, None, {}):
            raise InvariantError(f"deleted, and still there: {group}")
        compare(group_id, self.shard, self.shadow)


def unexpected(member: Member, code: ErrorCode, message: str | None) -> None:
    """A member got an error that it can't go on from, and that nobody expects."""
    raise InvariantError(f"{member} got {code.name}: {message}")
