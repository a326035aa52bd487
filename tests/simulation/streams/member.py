"""A simulated member: one thread of a Kafka Streams application, as the Java client would be one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from kohort.coordinator.step import Client
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_commit import OffsetCommitRequest
from kohort.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TaskOffset,
    TopicPartition,
)
from kohort.streams.tasks import Role, TaskId
from tests.simulation.streams.changelogs import Copy

if TYPE_CHECKING:
    from tests.simulation.streams.process import Process
    from tests.simulation.streams.world import StreamsWorld

Partitions = frozenset[tuple[str, int]]

RETRY_MS = 500
LOCK_MS = 300  # between two tries to open state that another thread has open
SHUTDOWN_APPLICATION = 4
FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
RETRIED = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)


class Tasks(NamedTuple):
    """An assignment."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()

    def roles(self) -> dict[TaskId, Role]:
        """Each task's role."""
        return {task: role for tasks, role in zip(self, Role, strict=True) for task in sorted(tasks)}


@dataclass(frozen=True)
class Habits:
    """What kind of client it is.

    Attributes:
        thread: its number in the process.
        instance_id: of a static member.
        rebalance_ms: its rebalance timeout.
        revoke_ms: how long it may take to give up tasks.
        reports: whether it reports task offsets, as Kafka Streams has done since 4.4.
        knows_ends: whether it reports the changelog ends of state that lies on its disk unused.
        endpoint: where it answers queries.
    """

    thread: int = 0
    instance_id: str | None = None
    rebalance_ms: int = 60_000
    revoke_ms: int = 500
    reports: bool = True
    knows_ends: bool = True
    endpoint: tuple[str, int] | None = None


class Member:
    """Joins, heartbeats, gives up and takes on tasks as it is told, restores their state and runs them.

    Attributes:
        held: the tasks that it has, by role: from when it takes them on until it has let go of them.
        running: the active tasks among them whose state is there.
        current: the assignment that it has reconciled, and reports.
        target: the assignment that it was told last.
        statuses: the status codes that it was told last.
        endpoints: which instance has which partitions, as it was told last.
    """

    def __init__(self, world: StreamsWorld, process: Process, habits: Habits) -> None:
        self.world = world
        self.process = process
        self.habits = habits
        self.application = process.application
        self.group_id = self.application.group_id
        self.process_id = process.name  # as of now: when this member is dead, the process may go on elsewhere
        self.member_id = world.new_id(process.name)
        self.epoch = 0
        self.gone = False
        self.held: dict[TaskId, Role] = {}
        self.running: set[TaskId] = set()
        self.current = self.target = Tasks()
        self.statuses: list[int] = []
        self.endpoints: dict[tuple[str, int], tuple[Partitions, Partitions]] = {}
        self._copies: dict[TaskId, Copy] = {}
        self._paused: list[TaskId] = []
        self.client = Client(self.member_id, "10.0.0.1", 1 if habits.reports else 0)
        self._interval_ms = 3_000
        self._offset_interval_ms = 60_000
        self._acceptable_lag = 0
        self._endpoint_epoch = -1
        self._timer = 0  # of heartbeats; only that of the latest number goes off
        self._asked = 0
        self._asking = False
        self._sent_at = 0
        self._acknowledging = False
        self._reconciling = False
        self._incarnation = 0  # rises when it has to abandon everything
        self._sent: Tasks | None = None
        self._sent_offsets: tuple[list[TaskOffset], list[TaskOffset]] | None = None
        self._offsets_at = 0
        self._stateful = {name for name, stores in self.application.stores.items() if stores}
        self._topics = {part.id: (self.application.topics(part) or [part.id])[0] for part in self.application.parts}
        self.shutting_down = False
        self._schedule(0)

    def __repr__(self) -> str:
        return f"{self.member_id} at {self.epoch}"

    # Heartbeats -------------------------------------------------------------------------------------------------

    def _schedule(self, ms: int) -> None:
        self._timer += 1
        self.world.after(ms, partial(self._go_off, self._timer))

    def _go_off(self, timer: int) -> None:
        if timer == self._timer and not self.gone and not self._asking:
            if self.process.frozen:
                self.process.when_awake(partial(self._schedule, 0))
            else:
                self._send()

    def _send(self) -> None:
        request = self._request()
        if self._acknowledging:
            self._acknowledging = False
            self._reconcile()
        self._asking = True
        self._asked += 1
        self._sent_at = self.world.now
        answered, missed = partial(self._answered, self._asked), partial(self._missed, self._asked)
        self.world.heartbeat(self, request, answered, missed)
        if self.running and self.world.rng.random() < self.world.commits:
            self._commit()

    def _request(self) -> StreamsGroupHeartbeatRequest:
        joining, habits, process = self.epoch == 0, self.habits, self.process
        request = nothing_new(self.group_id, self.member_id, self.epoch)
        request.endpoint_information_epoch = self._endpoint_epoch
        request.instance_id = habits.instance_id
        request.shutdown_application = self.shutting_down
        if joining:
            request.topology = self.application.topology()
            request.rebalance_timeout_ms = habits.rebalance_ms
            request.process_id = self.process_id
            request.client_tags = [KeyValue(key=key, value=value) for key, value in process.tags.items()]
            if habits.endpoint is not None:
                request.user_endpoint = Endpoint(host=habits.endpoint[0], port=habits.endpoint[1])
            request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
        # The Java client tells what it has even while it reconciles, if it has just joined, or missed an answer; and
        # when it has done what it was told first, though it was told more meanwhile. No coordinator can know then that
        # it goes on to take the rest: the protocol has no word for it.
        done = not self._reconciling and self.current == self.target
        changed = not joining and done and self.current != self._sent
        if changed:
            request.active_tasks, request.standby_tasks, request.warmup_tasks = map(_ids, self.current)
            self._sent = self.current
        if habits.reports and (joining or changed or self._offsets_due()):
            self._report(request)
        return request

    def _offsets_due(self) -> bool:
        now = self.world.now
        if self._offsets_at + self._offset_interval_ms <= now:
            return True
        warmups = (self._copies[task] for task in self.current.warmup if task in self._copies)
        return any(copy.lag(now) <= self._acceptable_lag for copy in warmups)

    def _report(self, request: StreamsGroupHeartbeatRequest) -> None:
        """Tell how far state has been restored, but for that of tasks that run."""
        now = self.world.now
        open_ones = {task: copy for task, copy in self._copies.items() if task not in self.running}
        on_disk = dict(self.process.on_disk())
        offsets = [_offset(task, copy.offset(now)) for task, copy in (open_ones | on_disk).items()]
        known = open_ones | on_disk if self.habits.knows_ends else open_ones
        ends = [_offset(task, copy.changelog.end(now)) for task, copy in known.items()]
        if (offsets, ends) != self._sent_offsets:
            request.task_offsets, request.task_end_offsets = offsets, ends
            self._sent_offsets = offsets, ends
            self._offsets_at = now

    def _missed(self, asked: int) -> None:
        """No response came: say everything again."""
        if asked == self._asked and not self.gone:
            self._asking = False
            self._sent = self._sent_offsets = None
            self._schedule(RETRY_MS)

    def _answered(self, asked: int, response: StreamsGroupHeartbeatResponse) -> None:
        if asked == self._asked and not self.gone:
            self.process.when_awake(partial(self._take, asked, response))

    def _take(self, asked: int, response: StreamsGroupHeartbeatResponse) -> None:
        if asked != self._asked or self.gone:
            return
        self._asking = False
        code = ErrorCode(response.error_code)
        if code is not ErrorCode.NONE:
            self._refused(code, response.error_message)
            return
        self._interval_ms = response.heartbeat_interval_ms
        self._offset_interval_ms = response.task_offset_interval_ms
        self._acceptable_lag = response.acceptable_recovery_lag
        self._endpoint_epoch = response.endpoint_information_epoch
        self.statuses = [status.status_code for status in response.status or ()]
        if response.partitions_by_user_endpoint is not None:
            self.endpoints = {
                (of.user_endpoint.host, of.user_endpoint.port): (
                    _topics(of.active_partitions),
                    _topics(of.standby_partitions),
                )
                for of in response.partitions_by_user_endpoint
            }
        self.epoch = response.member_epoch
        if SHUTDOWN_APPLICATION in self.statuses:
            self.world.after(0, self._shut_down)
        if response.active_tasks is not None:
            lists = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
            self.target = Tasks(*map(tasks_of, lists))
            if (
                unknown := {task.subtopology for tasks in self.target for task in tasks}
                - self.application.stores.keys()
            ):
                self.world.checker.fail(self.group_id, f"{self} has no subtopologies {unknown}, and gets tasks of them")
            self._reconcile()
        self._schedule(0 if self._acknowledging else max(0, self._sent_at + self._interval_ms - self.world.now))

    def _refused(self, code: ErrorCode, message: str | None) -> None:
        self._sent = self._sent_offsets = None
        if code in FENCED:
            self._asked += 1
            self._timer += 1
            self._incarnation += 1
            lost_ms = self.world.rng.randrange(1 + self.habits.revoke_ms)
            self._later(lost_ms, self._abandon)
        elif code in RETRIED:
            self._schedule(RETRY_MS)
        else:
            self.crash()
            self.world.fatal(self, code, message)

    def _shut_down(self) -> None:
        if not self.gone:
            self.process.leave()

    # Tasks ------------------------------------------------------------------------------------------------------

    def _reconcile(self) -> None:
        """Give up what isn't in the target any more, then take on the rest, then say so."""
        if self._reconciling or self.target == self.current:
            return
        self._reconciling = True
        rng, revoke_ms = self.world.rng, self.habits.revoke_ms
        patience = rng.randrange(1 + revoke_ms) if self.current.active - self.target.active else rng.randrange(50)
        self._later(patience, self._reconciled, self._incarnation, self.target)

    def _later(self, ms: int, action: Callable[..., object], *arguments: object) -> None:
        """Do something after a while, and not before the process is awake."""
        self.world.after(ms, lambda: self.process.when_awake(partial(action, *arguments)))

    def _reconciled(self, incarnation: int, target: Tasks) -> None:
        if incarnation != self._incarnation or self.gone:
            return
        roles = target.roles()
        for task in [task for task in self.held if task not in roles]:
            self._drop(task)
        for task, role in roles.items():
            if self.held.get(task) is not role:
                self._take_on(task, role)
        self.current = target
        self._reconciling = False
        self._acknowledging = True
        if not self._asking:
            self._schedule(0)

    def _take_on(self, task: TaskId, role: Role) -> None:
        if task in self.running:
            self._halt(task)
        self.held[task] = role
        self.world.checker.took(self, task, role)
        if self.is_stateful(task):
            if task in self._copies:
                self._restored(self._incarnation, task)
            else:
                self._open(self._incarnation, task)
        elif role is Role.ACTIVE:
            self._run(task)

    def _open(self, incarnation: int, task: TaskId) -> None:
        if incarnation != self._incarnation or task not in self.held or task in self._copies:
            return
        copy = self.process.open(task, self)
        if copy is None:
            self._later(LOCK_MS, self._open, incarnation, task)
        else:
            self._copies[task] = copy
            self._restored(incarnation, task)

    def _restored(self, incarnation: int, task: TaskId) -> None:
        """Run an active task if its state is there, else look again when it should be."""
        if incarnation != self._incarnation or self.held.get(task) is not Role.ACTIVE or task in self.running:
            return
        copy = self._copies.get(task)
        if copy is None:
            return
        if wait_ms := copy.wait_ms(self.world.now):
            self._later(wait_ms, self._restored, incarnation, task)
        else:
            self._run(task)

    def _run(self, task: TaskId) -> None:
        self.running.add(task)
        if copy := self._copies.get(task):
            copy.changelog.begin(self.world.now)
        self.world.runs(self.group_id, task, +1)

    def _halt(self, task: TaskId) -> None:
        self.running.discard(task)
        if copy := self._copies.get(task):
            copy.changelog.cease(self.world.now)
        self.world.runs(self.group_id, task, -1)

    def _drop(self, task: TaskId) -> None:
        if task in self.running:
            self._halt(task)
        del self.held[task]
        if copy := self._copies.pop(task, None):
            copy.close(self.world.now)
        self.world.checker.dropped(self, task)

    def _drop_all(self) -> None:
        for task in list(self.held):
            self._drop(task)
        self._paused.clear()

    def _abandon(self) -> None:
        """Let go of everything, having been fenced, and join anew."""
        if not self.gone:
            self._drop_all()
            self.epoch = 0
            self.current = self.target = Tasks()
            self._reconciling = self._acknowledging = self._asking = False
            self.world.checker.rejoins(self)
            self._schedule(0)

    # What chaos does to it --------------------------------------------------------------------------------------

    def crash(self) -> None:
        """Be gone without a word."""
        if self.gone:
            return
        self.gone = True
        self._incarnation += 1
        self._drop_all()

    def leave(self, for_a_while: bool) -> None:
        """Be gone, and say so."""
        if self.gone:
            return
        self.crash()
        self.epoch = -2 if for_a_while and self.habits.instance_id is not None else -1
        self.world.heartbeat(self, self._request(), lambda response: None, lambda: None)

    def pause(self) -> None:
        """Do nothing until `resume`."""
        self._paused = list(self.running)
        for task in self._paused:
            self._halt(task)
        for copy in self._copies.values():
            copy.close(self.world.now)

    def resume(self) -> None:
        """Go on."""
        for copy in self._copies.values():
            copy.open(self, self.world.now)
        for task in self._paused:
            self._run(task)
        self._paused.clear()

    def copy(self, task: TaskId) -> Copy | None:
        """Its open copy of a task's state."""
        return self._copies.get(task)

    def is_stateful(self, task: TaskId) -> bool:
        """Whether a task has state."""
        return task.subtopology in self._stateful

    def _commit(self) -> None:
        task = self.world.rng.choice(sorted(self.running))
        partition = OffsetCommitRequest.Topic.Partition(partition_index=task.partition, committed_offset=self.world.now)
        request = OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.habits.instance_id,
            topics=[OffsetCommitRequest.Topic(name=self._topics[task.subtopology], partitions=[partition])],
        )
        self.world.commit(self, task, request)


def nothing_new(group_id: str, member_id: str, epoch: int) -> StreamsGroupHeartbeatRequest:
    """A heartbeat that says that nothing has changed."""
    return StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=None,
        rack_id=None,
        topology=None,
        active_tasks=None,
        standby_tasks=None,
        warmup_tasks=None,
        process_id=None,
        user_endpoint=None,
        client_tags=None,
        task_offsets=None,
        task_end_offsets=None,
    )


def _ids(tasks: Iterable[TaskId]) -> list[TaskIds]:
    """Tasks as messages have them."""
    partitions: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        partitions.setdefault(subtopology, []).append(partition)
    return [TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in partitions.items()]


def tasks_of(ids: Iterable[TaskIds] | None) -> frozenset[TaskId]:
    """Tasks of a message."""
    return frozenset(TaskId(of.subtopology_id, partition) for of in ids or () for partition in of.partitions)


def _offset(task: TaskId, offset: int) -> TaskOffset:
    return TaskOffset(subtopology_id=task.subtopology, partition=task.partition, offset=offset)


def _topics(partitions: Iterable[TopicPartition]) -> Partitions:
    return frozenset((of.topic, partition) for of in partitions for partition in of.partitions)
