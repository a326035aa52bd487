"""Classic groups: members join and sync, the leader assigns, and all send heartbeats (seed 003; KIP-62, 345, 394)."""

from kohort.coordinator.classic.group import ClassicGroup
from kohort.coordinator.classic.groups import CLASSIC, ClassicGroups
from kohort.coordinator.classic.offset_rules import ClassicOffsetRules
from kohort.coordinator.classic.settings import ClassicSettings
from kohort.coordinator.classic.states import GroupState

__all__ = ["CLASSIC", "ClassicGroup", "ClassicGroups", "ClassicOffsetRules", "ClassicSettings", "GroupState"]
