"""A streams group as it will be when the records of the current step are in the log."""

from __future__ import annotations

from dataclasses import replace

from kohort.coordinator.modern.draft import ModernDraft
from kohort.coordinator.step import Record
from kohort.coordinator.streams import records
from kohort.coordinator.streams.group import StreamsGroup
from kohort.coordinator.streams.member import StreamsMetadata
from kohort.coordinator.streams.settings import StreamsSettings
from kohort.coordinator.streams.soft_state import SoftState
from kohort.streams.tasks import Role, TaskId
from kohort.streams.topology import Topology


class Draft(ModernDraft[StreamsMetadata, TaskId, Role, SoftState]):
    """A group with changes that aren't made yet.

    Attributes:
        topology, metadata_hash, validated_topology_epoch, configs: the group's, changed.
    """

    def __init__(self, group: StreamsGroup, settings: StreamsSettings, now: int) -> None:
        super().__init__(group, records, StreamsMetadata(), now)
        self.group = group
        self.settings = settings
        self.topology = group.topology
        self.metadata_hash = group.metadata_hash
        self.validated_topology_epoch = group.validated_topology_epoch
        self.configs = group.configs

    @property
    def waits_for_interval(self) -> bool:
        """Whether the next target has to wait, since the latest was made a short while ago."""
        return self.has_target_of_late(self.settings.assignment_interval_ms)

    def group_record(self) -> Record:
        return records.group_record(
            self.group_id, self.epoch, self.metadata_hash, self.validated_topology_epoch, self.configs
        )

    def remove_member(self, member_id: str) -> None:
        super().remove_member(member_id)
        self.soft = self.soft.without_member(member_id)
        if self.is_empty():
            self.soft = replace(self.soft, shutdown_by=None)

    def put_topology(self, topology: Topology) -> None:
        self.topology = topology
        self.records.append(records.topology_record(self.group_id, topology))
