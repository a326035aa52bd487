"""The real group coordinator, with its log in memory: heartbeats, offsets, markers, restarts."""

from __future__ import annotations

from typing import Any

from kohort.client.types import TopicPartition
from kohort.coordinator.shard import GroupSettings, GroupShard
from kohort.coordinator.step import Client, Step
from kohort.coordinator.streams.environment import StreamsEnvironment
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.coordinator.timing_wheel import TimingWheel
from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.offset_fetch import OffsetFetchRequest
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from kohort.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.simulation.runtime.application import GROUP
from tests.simulation.runtime.clock import Clock
from tests.simulation.streams.cluster import Topics

HEARTBEAT_VERSION = 1
CREATED_AFTER_MS = 300  # internal topics


class Coordinator:
    """Drives the shard as the broker does, and makes it anew from its log.

    Attributes:
        up: whether it answers.
    """

    def __init__(self, clock: Clock, settings: StreamsSettings) -> None:
        self.clock, self.settings = clock, settings
        self.topics = Topics()
        self.up = True
        self.wheel = TimingWheel(clock.now)
        self._missing: set[str] = set()
        self._log: list[tuple[Any, ...]] = []  # key, value, producer; or producer id, epoch, whether it committed
        self._members = 0
        self.shard = self._new_shard()
        self.shard.loaded(clock.now)

    def _new_shard(self) -> GroupShard:
        environment = StreamsEnvironment(lambda group_id: self.settings, self.topics)
        return GroupShard(0, GroupSettings(), self.wheel, self._new_id, environment)

    def _new_id(self, name: str) -> str:
        self._members += 1
        return f"{name}-{self._members}"

    # Requests ---------------------------------------------------------------------------------------------------

    def heartbeat(self, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
        """Answer a heartbeat."""
        results: list[Any] = []
        client = Client(request.member_id, "10.0.0.1", HEARTBEAT_VERSION)
        self._perform(self.shard.streams.heartbeat(request, client, self.clock.now, results.append))
        (result,) = results
        missing = [topic for topic in result.missing_topics if topic.name not in self._missing]
        if missing:
            self._missing.update(topic.name for topic in missing)
            self.clock.after(CREATED_AFTER_MS, lambda: self._create(missing))
        response: StreamsGroupHeartbeatResponse = result.response
        return response

    def _create(self, missing: list[Any]) -> None:
        for topic in missing:
            self._missing.discard(topic.name)
            self.topics.create(topic.name, topic.partitions)
        if self.up:
            self._perform(self.shard.streams.topics_changed([topic.name for topic in missing]))

    def txn_commit(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        """Take offsets into a transaction."""
        answers: list[Any] = []
        self._perform(self.shard.offsets.txn_commit(request, Client(version=5), self.clock.now, answers.append))
        codes = [ErrorCode(one.error_code) for topic in answers[0].topics for one in topic.partitions]
        return next((code for code in codes if code), ErrorCode.NONE)

    def committed(
        self, partitions: tuple[TopicPartition, ...], member_id: str, epoch: int
    ) -> tuple[ErrorCode, dict[TopicPartition, tuple[ErrorCode, int, str]]]:
        """Stable offsets, with their metadata; -1 where there is none."""
        topics = [OffsetFetchRequest.Group.Topic(name=at.topic, partition_indexes=(at.partition,)) for at in partitions]
        asked = OffsetFetchRequest.Group(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=topics)
        found = self.shard.offsets.fetch(asked, require_stable=True)
        return ErrorCode(found.error_code), {
            TopicPartition(topic.name, one.partition_index): (
                ErrorCode(one.error_code),
                one.committed_offset,
                one.metadata or "",
            )
            for topic in found.topics
            for one in topic.partitions
        }

    def mark(self, producer_id: int, epoch: int, commit: bool) -> None:
        """Write a transaction's marker beside its offsets."""
        self._log.append((producer_id, epoch, commit))
        self.shard.replay_marker(producer_id, epoch, commit)

    def pending(self, partition: TopicPartition) -> bool:
        """Whether an open transaction has an offset of a partition."""
        return self.shard.offsets.has_pending(GROUP, partition.topic, partition.partition)

    def processes(self) -> set[str]:
        """Processes of the group's members."""
        group = self.shard.streams.get(GROUP)
        return set() if group is None else {member.metadata.process_id for member in group.members.values()}

    def configure(self, settings: StreamsSettings) -> None:
        """Change the settings of groups."""
        self.settings = settings
        self._perform(self.shard.streams.settings_changed())

    # By itself --------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Timers that are due go off."""
        self.wheel.advance(self.clock.now)
        self._drain()

    def stop(self) -> None:
        """End: what isn't in the log is forgotten."""
        self.up = False
        self.wheel = TimingWheel(self.clock.now)

    def start(self) -> None:
        """Begin with what the log has."""
        if self.up:
            return
        self.wheel = TimingWheel(self.clock.now)
        self.shard = self._new_shard()
        for entry in self._log:
            if isinstance(entry[0], int):
                self.shard.replay_marker(*entry)
            else:
                self.shard.replay(*entry)
        self.up = True
        self.shard.loaded(self.clock.now)
        self._drain()

    def _perform(self, step: Step) -> None:
        for key, value in step.records:
            self._log.append((key, value, step.producer))
            self.shard.replay(key, value, step.producer)
        if step.apply is not None:
            step.apply()
        for reply, response in step.answers:
            reply(response)
        self._drain()

    def _drain(self) -> None:
        while self.shard.pending_steps:
            step = self.shard.pending_steps.pop(0)
            self._perform(step() if callable(step) else step)
