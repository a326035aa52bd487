"""One streams group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kohort.coordinator.modern.group import ModernGroup
from kohort.coordinator.streams.configured_topology import ConfiguredTopology
from kohort.coordinator.streams.environment import PlacementJob
from kohort.coordinator.streams.member import StreamsMember, StreamsMetadata
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.coordinator.streams.states import GroupState
from kohort.coordinator.streams.warmups import Refined
from kohort.coordinator.timing_wheel import Timer
from kohort.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse
from kohort.streams.task_offsets import TaskOffsets
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology


class StreamsGroup(ModernGroup[StreamsMetadata, TaskId, Role]):
    """A streams group: the state of its records, and soft state beside it that a restart may lose.

    Attributes of records:
        topology: the application's; None before a member brought one.
        metadata_hash: fingerprint of the topics at the latest bump of the group epoch.
        validated_topology_epoch: epoch of the topology if all its topics were in order then, else -1.
        configs: assignment configs at the latest bump.

    Soft state:
        offsets: the task offsets that members reported.
        configured: the topology with its topics resolved; None if that is out of date.
        fingerprint: the metadata hash of the topics then.
        refined: the refined target at `refined_epoch`: tasks that warm up elsewhere stay where they are.
        refinement_stale: something has changed that may let a task move on.
        shutdown_by: the member that asked the whole application to shut down.
        endpoint_epoch: rises when the map of endpoints changes; `endpoints` is the map at an epoch.
        endpoints_stale: the map has changed since; `endpoints_at` is when the epoch rose last, in ms since 1970.
        initial_rebalance_delay: the timer that waits for more members to join a new group.
        placement_timer: waits before tasks are placed, since more members may leave at the same time.
        task_offsets_timer: waits for task offsets after a restart.
        job: the placement job under way.
        settings: the group's settings at the latest heartbeat.
        empty_since: when the last member left, in ms since 1970; None if it isn't known or the group has members.
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
        self.refinement_stale = False
        self.shutdown_by: str | None = None
        self.endpoint_epoch = 0
        self.endpoints_stale = False
        self.endpoints_at = 0
        self.endpoints: tuple[int, list[StreamsGroupHeartbeatResponse.PartitionsByUserEndpoint]] = (-1, [])
        self.initial_rebalance_delay: Timer | None = None
        self.placement_timer: Timer | None = None
        self.task_offsets_timer: Timer | None = None
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
        if not self.members:
            return GroupState.EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return GroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return GroupState.ASSIGNING
        return GroupState.STABLE if self.reconciled else GroupState.RECONCILING

    @property
    def delayed(self) -> bool:
        """Whether it waits for more members to join."""
        return self.initial_rebalance_delay is not None and self.initial_rebalance_delay.waiting

    def new_member(self, member_id: str, metadata: StreamsMetadata) -> StreamsMember:
        return StreamsMember(member_id, metadata)

    def drop_member(self, member_id: str) -> None:
        """Removes a member, with its task offsets."""
        super().drop_member(member_id)
        self.offsets.forget(member_id)
        if self.refined is not None and member_id in self.refined.tasks:
            left = {name: tasks for name, tasks in self.refined.tasks.items() if name != member_id}
            self.refined = replace(self.refined, tasks=left)
        if not self.members:
            self.shutdown_by = None

    def put_topology(self, topology: Topology | None) -> None:
        self.topology = topology
        self.revision += 1

    @property
    def readers(self) -> Mapping[str, str]:
        """The subtopology that reads a topic, by the topic's name."""
        return {} if self.topology is None else self.topology.readers

    def bump_revision(self) -> None:
        """Soft state has changed: results that are cached for members are out of date."""
        self.revision += 1

    def endpoints_changed(self) -> None:
        """The map of endpoints has changed."""
        self.endpoints_stale = True
        self.bump_revision()

    def forget_derived(self) -> None:
        """Forgets what was derived from records that couldn't be appended."""
        self.configured = None
        self.refined = None
        self.refinement_stale = True
        self.job = None
        self.endpoints_changed()
        if self.members:
            self.empty_since = None
