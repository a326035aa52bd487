"""A share group as it will be when the records of the current step are in the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from kohort.coordinator.modern.draft import ModernDraft
from kohort.coordinator.share import records
from kohort.coordinator.share.group import ShareGroup, SoftState
from kohort.coordinator.share.member import Role, ShareMetadata
from kohort.coordinator.share.settings import ShareSettings
from kohort.coordinator.share.state_partitions import StatePartitions
from kohort.coordinator.step import Record
from kohort.protocol.topic_partition import TopicIdPartition


class Draft(ModernDraft[ShareMetadata, TopicIdPartition, Role, SoftState]):
    """A group with changes that aren't made yet.

    Attributes:
        metadata_hash, states: the group's, changed.
    """

    def __init__(self, group: ShareGroup, settings: ShareSettings, now: int) -> None:
        super().__init__(group, records, ShareMetadata(), now)
        self.group = group
        self.settings = settings
        self.metadata_hash = group.metadata_hash
        self.states = group.states

    def group_record(self) -> Record:
        return records.group_record(self.group_id, self.epoch, self.metadata_hash)

    def put_states(self, states: StatePartitions) -> None:
        self.states = states
        self.records.append(records.states_record(self.group_id, states))

    def note_asked(self, topic_ids: Iterable[UUID], now: int) -> None:
        """The share coordinator is asked to initialize partitions of these topics."""
        asked_at = {topic_id: at for topic_id, at in self.soft.asked_at.items() if topic_id in self.states.initializing}
        self.soft = replace(self.soft, asked_at={**asked_at, **dict.fromkeys(topic_ids, now)})
