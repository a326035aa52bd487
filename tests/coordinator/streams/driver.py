"""Drives a shard with streams groups as the broker's runtime does, with a log in memory and a clock to be moved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from kohort.coordinator.placement import Placement, TaskId
from kohort.coordinator.shard import GroupSettings, GroupShard, value_version
from kohort.coordinator.step import Client, Step, append_error
from kohort.coordinator.streams.environment import PlacementJob, StreamsEnvironment
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.results import HeartbeatResult
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.streams_group_heartbeat import (
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TaskOffset,
    TopicInfo,
)
from kohort.protocol.stored import OFFSETS_TOPIC, decode_key, record_type
from kohort.streams.configured_topology import InternalTopic
from kohort.streams.tasks import Role, task_ids, tasks_of

START = 1_700_000_000_000
GROUP = "app"
CLIENT = Client("client", "10.0.0.1", 0)
TopologyRequest = StreamsGroupHeartbeatRequest.Topology


def stateless(name: str = "0", topic: str = "in") -> TopologyRequest.Subtopology:
    return TopologyRequest.Subtopology(subtopology_id=name, source_topics=(topic,))


def stateful(name: str = "0", topic: str = "in") -> TopologyRequest.Subtopology:
    changelog = TopicInfo(name=f"{GROUP}-store-{name}-changelog")
    return TopologyRequest.Subtopology(subtopology_id=name, source_topics=(topic,), state_changelog_topics=[changelog])


class Topics:
    """A cluster whose topics the test makes."""

    def __init__(self, topics: Mapping[str, int]) -> None:
        self.topics = dict(topics)
        self.ids: dict[str, UUID] = {}

    def partitions(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def topic_id(self, topic: str) -> UUID | None:
        if topic not in self.topics:
            return None
        return self.ids.setdefault(topic, UUID(int=len(self.ids) + 1))

    def matching(self, pattern: str) -> Sequence[str]:
        return sorted(name for name in self.topics if re.fullmatch(pattern, name))


@dataclass
class Driver:
    """A shard, its log, the topics, and the time."""

    topics: Mapping[str, int] = field(default_factory=lambda: {"in": 4})
    settings: StreamsSettings = field(
        default_factory=lambda: StreamsSettings(initial_rebalance_delay_ms=0, assignment_interval_ms=0)
    )
    elsewhere: bool = False
    """Whether placements take their time: they wait in `jobs` for `finish`."""

    def __post_init__(self) -> None:
        self.now = START
        self.cluster = Topics(self.topics)
        self.jobs: list[PlacementJob] = []
        self.failing = False
        self.draining = False
        self.log: list[tuple[bytes, bytes | None]] = []
        self.append_error: ErrorCode | None = None
        self.created: list[InternalTopic] = []
        self.wheel = TimingWheel(self.now)
        self.shard = self.new_shard()
        self.shard.loaded(self.now)

    def new_shard(self) -> GroupShard:
        environment = StreamsEnvironment(lambda group_id: self.settings, self.cluster, self._place)
        return GroupShard(0, GroupSettings(), self.wheel, lambda name: f"{name}-1", environment)

    def _place(self, job: PlacementJob) -> Placement | None:
        if self.elsewhere:
            self.jobs.append(job)
            return None
        if self.failing and job.assignor != "sticky":
            raise RuntimeError("no placement")
        return job.run()

    def finish(self, *, fails: bool = False) -> None:
        """The oldest job is done."""
        job = self.jobs.pop(0)
        self.perform(self.shard.streams.placed(job, None if fails else job.run(), self.now))

    def configure(self, **changes: Any) -> None:
        self.settings = replace(self.settings, **changes)
        self.perform(self.shard.streams.settings_changed())

    def perform(self, step: Step) -> list[str]:
        """Carry a step out; the kinds of its records."""
        if step.records and self.append_error is not None:
            assert step.failed is not None
            return self.perform(step.failed(append_error(self.append_error)))
        kinds = []
        for key, value in step.records:
            kind = record_type(OFFSETS_TOPIC, key.__message__.key)
            encoded = None if value is None else kind.encode_value(value, value_version(value))
            self.log.append((kind.encode_key(key), encoded))
            kinds.append(f"{kind.number}{'' if value is not None else '-'}")
        for key, value in step.records:
            self.shard.replay(key, value, step.producer)
        if step.apply is not None:
            step.apply()
        for reply, response in step.answers:
            reply(response)
        self.kinds = kinds
        self.drain()
        return kinds

    def drain(self) -> None:
        """Carry out the steps that are left, one after another."""
        if self.draining:
            return
        self.draining = True
        try:
            while self.shard.pending_steps:
                self.perform(self.shard.pending_steps.pop(0))
        finally:
            self.draining = False

    def replayed(self) -> GroupShard:
        """A new shard that has read the log."""
        shard = self.new_shard()
        for raw_key, raw_value in self.log:
            kind, key = decode_key(OFFSETS_TOPIC, raw_key)
            shard.replay(key, None if raw_value is None else kind.decode_value(raw_value)[0])
        return shard

    def restart(self) -> None:
        self.wheel = TimingWheel(self.now)
        self.shard = self.replayed()
        self.shard.loaded(self.now)

    def sleep(self, ms: int) -> None:
        """Let time pass; timers run at their deadlines."""
        end = self.now + ms
        while (due := self.wheel.next_deadline()) is not None and due <= end:
            self.now = max(self.now, due)
            self.wheel.advance(self.now)
            self.drain()
        self.now = end
        self.wheel.advance(end)

    def topic(self, name: str, partitions: int | None) -> None:
        """A topic is created, grows, or is deleted."""
        if partitions is None:
            del self.cluster.topics[name]
        else:
            self.cluster.topics[name] = partitions
        self.perform(self.shard.streams.topics_changed([name]))

    # Requests ---------------------------------------------------------------------------------------------------

    def send(self, request: StreamsGroupHeartbeatRequest, client: Client = CLIENT) -> StreamsGroupHeartbeatResponse:
        results: list[HeartbeatResult] = []
        step = self.shard.streams.heartbeat(request, client, self.now, results.append)
        self.perform(step)
        (self.result,) = results
        response = self.result.response
        response.encode(client.version)
        return response

    def create_missing(self) -> None:
        """Create the internal topics that the latest answer asked for."""
        for topic in self.result.missing_topics:
            self.created.append(topic)
            self.cluster.topics[topic.name] = topic.partitions
        names = [topic.name for topic in self.result.missing_topics]
        self.perform(self.shard.streams.topics_changed(names))

    # What tests ask ---------------------------------------------------------------------------------------------

    @property
    def group(self) -> StreamsGroup:
        group = self.shard.streams.get(GROUP)
        assert group is not None
        return group

    def state(self) -> str:
        return self.group.state.value

    def dump(self, shard: GroupShard | None = None) -> object:
        """All that a restart has to bring back."""
        group = (shard or self.shard).streams.get(GROUP)
        if group is None:
            return None
        return (
            group.epoch,
            group.assignment_epoch,
            group.topology,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.configs,
            {member_id: (member.metadata, member.current) for member_id, member in group.members.items()},
            {member_id: dict(tasks) for member_id, tasks in group.target.items()},
            group.static_ids,
            {
                task: dict(group.ownership.holders(task))
                for member in group.members.values()
                for task, _ in member.current.held()
            },
        )


class App:
    """A member as Kafka Streams is one: it joins, gives up before it takes, and acknowledges what it did at once."""

    def __init__(
        self,
        driver: Driver,
        name: str,
        *subtopologies: TopologyRequest.Subtopology,
        process: str | None = None,
        instance: str | None = None,
        endpoint: tuple[str, int] | None = None,
        tags: Mapping[str, str] | None = None,
        epoch: int = 0,
        reports: bool = False,
        rebalance_timeout_ms: int = 60_000,
    ) -> None:
        self.driver = driver
        self.name = name
        self.process = process or f"process-{name}"
        self.instance = instance
        self.endpoint = endpoint
        self.tags = dict(tags or {})
        self.topology = TopologyRequest(epoch=epoch, subtopologies=list(subtopologies) or [stateless()])
        self.reports = reports
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = 0
        self.endpoint_epoch = -1
        self.tasks: dict[TaskId, Role] = {}
        self.offsets: dict[TaskId, int] = {}
        self.ends: dict[TaskId, int] = {}
        self.status: list[int] = []
        self.error = ErrorCode.NONE

    def request(self, **fields: Any) -> StreamsGroupHeartbeatRequest:
        request = StreamsGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self.name,
            member_epoch=self.epoch,
            endpoint_information_epoch=self.endpoint_epoch,
            instance_id=self.instance,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def join_request(self, **fields: Any) -> StreamsGroupHeartbeatRequest:
        request = self.request(
            member_epoch=0,
            topology=self.topology,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            process_id=self.process,
            user_endpoint=None if self.endpoint is None else Endpoint(host=self.endpoint[0], port=self.endpoint[1]),
            client_tags=[KeyValue(key=key, value=value) for key, value in self.tags.items()],
            active_tasks=[],
            standby_tasks=[],
            warmup_tasks=[],
        )
        if self.reports:
            request.task_offsets, request.task_end_offsets = ids_of(self.offsets), ids_of(self.ends)
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def owned(self) -> dict[str, list[TaskIds]]:
        """The fields of a request that say what it has."""
        active, standby, warmup = (task_ids(TaskIds, self.tasks, role) for role in Role)
        return {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": warmup}

    def join(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """Join; then take what is given."""
        self.tasks = {}
        return self.take(self.driver.send(self.join_request(**fields)))

    def beat(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """One heartbeat without news, and what comes of it."""
        return self.take(self.driver.send(self.request(**fields)))

    def full(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """One heartbeat that says what it has."""
        return self.take(self.driver.send(self.request(**{**self.owned(), **fields})))

    def lost(self, **fields: Any) -> None:
        """A heartbeat whose answer is lost."""
        self.driver.send(self.request(**{**self.owned(), **fields}))

    def report(self, **fields: Any) -> StreamsGroupHeartbeatResponse:
        """A heartbeat with task offsets."""
        return self.beat(task_offsets=ids_of(self.offsets), task_end_offsets=ids_of(self.ends), **fields)

    def take(self, response: StreamsGroupHeartbeatResponse) -> StreamsGroupHeartbeatResponse:
        """Do what an answer says."""
        self.error = ErrorCode(response.error_code)
        if not self.error:
            self.epoch = response.member_epoch
            self.endpoint_epoch = response.endpoint_information_epoch
            self.status = [status.status_code for status in response.status or []]
            if response.active_tasks is not None:
                assert response.standby_tasks is not None and response.warmup_tasks is not None
                self.tasks = tasks_of(response.active_tasks, response.standby_tasks, response.warmup_tasks)
        return response

    def leave(self, epoch: int = -1) -> StreamsGroupHeartbeatResponse:
        """Leave, for good or for a while."""
        self.tasks = {}
        response = self.driver.send(self.request(member_epoch=epoch))
        self.error = ErrorCode(response.error_code)
        return response

    def reconcile(self) -> None:
        """Send heartbeats until nothing changes any more."""
        reconcile(self)

    def have(self, role: Role = Role.ACTIVE) -> list[str]:
        """Its tasks in a role, for comparing."""
        return sorted(f"{task.subtopology}_{task.partition}" for task, held in self.tasks.items() if held is role)


def ids_of(offsets: Mapping[TaskId, int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=task.subtopology, partition=task.partition, offset=offset)
        for task, offset in offsets.items()
    ]


def reconcile(*apps: App, rounds: int = 50) -> None:
    """Send heartbeats, each of which says what the member has, until nothing changes any more."""
    for _ in range(rounds):
        before = [(app.epoch, dict(app.tasks)) for app in apps]
        for app in apps:
            app.full()
            assert not app.error, app.error
        if [(app.epoch, app.tasks) for app in apps] == before:
            return
    raise AssertionError("the group doesn't come to rest")


def joined(
    driver: Driver, names: Iterable[str], *subtopologies: TopologyRequest.Subtopology, **options: Any
) -> list[App]:
    """Apps that have joined and are reconciled."""
    apps = [App(driver, name, *subtopologies, **options) for name in names]
    for app in apps:
        app.join()
        assert not app.error, app.error
    if driver.result.missing_topics:
        driver.create_missing()
    reconcile(*apps)
    return apps
