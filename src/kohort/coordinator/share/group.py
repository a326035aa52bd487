"""One share group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from kohort.coordinator.modern.group import ModernGroup
from kohort.coordinator.share.member import Role, ShareMetadata
from kohort.coordinator.share.state_partitions import StatePartitions
from kohort.coordinator.share.states import GroupState
from kohort.protocol.topic_partition import TopicIdPartition


@dataclass(frozen=True, slots=True)
class SoftState:
    """What a restart may lose.

    Attributes:
        asked_at: when the share coordinator was last asked to initialize partitions of a topic, in ms since 1970.
    """

    asked_at: Mapping[UUID, int] = field(default_factory=dict)


class ShareGroup(ModernGroup[ShareMetadata, TopicIdPartition, Role, SoftState]):
    """A share group: the state of its records.

    Attributes:
        metadata_hash: fingerprint of the subscribed topics at the latest bump of the group epoch.
        states: which partitions have a state at the share coordinator.
    """

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id, ShareMetadata(), SoftState())
        self.metadata_hash = 0
        self.states = StatePartitions()

    def __repr__(self) -> str:
        return (
            f"<share group {self.group_id!r} {self.state.value} epoch={self.epoch}"
            f" assignment_epoch={self.assignment_epoch} members={len(self.members)}>"
        )

    @property
    def state(self) -> GroupState:
        return GroupState.STABLE if self.members else GroupState.EMPTY
