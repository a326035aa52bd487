"""One streams group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kohort.coordinator.modern.group import ModernGroup
from kohort.coordinator.streams.environment import PlacementJob
from kohort.coordinator.streams.internal_topics import ConfiguredTopology
from kohort.coordinator.streams.member import StreamsMember, StreamsMetadata
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.coordinator.streams.states import GroupState
from kohort.coordinator.streams.warmups import Refined
from kohort.coordinator.timing_wheel import Timer
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology

__all__ = ["StreamsGroup"]


class StreamsGroup(ModernGroup[StreamsMetadata, TaskId, Role]):
    """A streams group: what its records say, and soft state beside it that a restart may lose.

    Attributes of records:
        topology: what the application consists of; None before a member told.
        metadata_hash: fingerprint of the topics at the latest bump of the group epoch.
        validated_topology_epoch: epoch of the topology if all its topics were in order then, else -1.
        configs: assignment configs at the latest bump.

    Soft state:
        offsets: how far members say that their copies have got.
        configured: what the topology comes to with the topics that there are; None if that has to be worked out anew.
        fingerprint: that of the topics then.
        refined: what members are reconciled to at `refined_epoch`: the target, but for tasks that warm up.
        refine_again: something has happened that may let a task move on.
        shutdown_by: the member that asked the whole application to shut down.
        endpoint_epoch: rises when the map of endpoints changes; `endpoints` is the map at an epoch.
        endpoints_stale: it has changed since; `endpoints_at` is when the epoch rose last, in ms since 1970.
        delay: waits for more members to join a new group.
        soon: waits a moment, since where one member goes others may, before tasks are placed anew.
        reports_due: waits for task offsets after a restart.
        job: the placement that is being worked out.
        settings: the group's settings when they were last looked at.
        empty_since: when the last member left, in ms since 1970; None if that isn't known, or if there are members.
    """

    members: dict[str, StreamsMember]  # type: ignore[assignment]

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, StreamsMetadata())
        self.topology: Topology | None = None
        self.metadata_hash = 0
        self.validated_topology_epoch = -1
        self.configs: Mapping[str, str] = {}
        self.offsets = TaskOffsets()
        self.configured: ConfiguredTopology | None = None
        self.fingerprint = 0
        self.refined: Refined | None = None
        self.refined_epoch = -1
        self.refine_again = False
        self.shutdown_by: str | None = None
        self.endpoint_epoch = 0
        self.endpoints_stale = False
        self.endpoints_at = 0
        self.endpoints: tuple[int, list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint]] = (-1, [])
        self.delay: Timer | None = None
        self.soon: Timer | None = None
        self.reports_due: Timer | None = None
        self.job: PlacementJob | None = None
        self.settings: StreamsSettings | None = None
        self.empty_since: int | None = None

    def __repr__(self) -> str:
        return (
            f"<streams group {self.group_id!r} {self.state.value} epoch={self.epoch}"
            f" assignment_epoch={self.assignment_epoch} members={len(self.members)}>"
        )

    @property
    def state(self) -> GroupState:
        """Where it stands."""
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if self.reconciled else GroupState.RECONCILING

    @property
    def delayed(self) -> bool:
        """Whether it still waits for more members to join."""
        return self.delay is not None and self.delay.waiting

    def new_member(self, member_id: str, metadata: StreamsMetadata) -> StreamsMember:
        """Makes a member."""
        return StreamsMember(member_id, metadata)

    def drop_member(self, member_id: str) -> None:
        """A member is gone, and what was known of its state on disk with it."""
        super().drop_member(member_id)
        self.offsets.forget(member_id)
        if self.refined is not None and member_id in self.refined.tasks:
            left = {name: tasks for name, tasks in self.refined.tasks.items() if name != member_id}
            self.refined = replace(self.refined, tasks=left)
        if not self.members:
            self.shutdown_by = None

    def put_topology(self, topology: Topology | None) -> None:
        """The application consists of this now."""
        self.topology = topology
        self.revision += 1

    @property
    def readers(self) -> Mapping[str, str]:
        """The subtopology that reads a topic, by the topic's name."""
        return {} if self.topology is None else self.topology.readers

    def touch(self) -> None:
        """Soft state has changed: what members were answered before may not hold any more."""
        self.revision += 1

    def endpoints_changed(self) -> None:
        """Another member, or another place of a task, for the map of endpoints."""
        self.endpoints_stale = True
        self.touch()

    def forget_derived(self) -> None:
        """Forget what was worked out for records that never got into the log."""
        self.configured = None
        self.refined = None
        self.refine_again = True
        self.job = None
        self.endpoints_changed()
        if self.members:
            self.empty_since = None
