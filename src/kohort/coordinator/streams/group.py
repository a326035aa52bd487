"""One streams group."""

from __future__ import annotations

from collections.abc import Mapping

from kohort.coordinator.modern.group import ModernGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.soft_state import SoftState
from kohort.coordinator.streams.states import GroupState
from kohort.coordinator.timing_wheel import Timer
from kohort.protocol.heartbeat_wishes import NO_TIMEOUT
from kohort.streams.configured_topology import ConfiguredTopology
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology


class StreamsGroup(ModernGroup[StreamsMetadata, TaskId, Role, SoftState]):
    """A streams group: the state of its records, and soft state beside it that a restart may lose.

    Attributes:
        topology: the application's; None before a member brought one.
        metadata_hash: fingerprint of the topics at the latest bump of the group epoch.
        validated_topology_epoch: epoch of the topology if all its topics were in order then, else -1.
        configs: assignment configs at the latest bump.
        placement_timer: runs at the soft state's `placement_at`.
        task_offsets_timer: waits for task offsets after a restart.
        disconnect_timeout_ms: the group's own setting, by which its members' connections are watched; see
            `StreamsSettings`.
    """

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, StreamsMetadata(), SoftState())
        self.topology: Topology | None = None
        self.metadata_hash = 0
        self.validated_topology_epoch = -1
        self.configs: Mapping[str, str] = {}
        self.placement_timer: Timer | None = None
        self.task_offsets_timer: Timer | None = None
        self.disconnect_timeout_ms = NO_TIMEOUT

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
    def configured(self) -> ConfiguredTopology | None:
        """The topology with its topics resolved; None if that is out of date."""
        return self.soft.configured

    @property
    def readers(self) -> Mapping[str, str]:
        """The subtopology that reads a topic, by the topic's name."""
        return {} if self.topology is None else self.topology.readers
