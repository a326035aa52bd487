"""Committed offsets of groups: committed, in transactions or not, fetched, deleted and expired."""

from kohort.coordinator.offsets.offsets import Offsets, OffsetSettings
from kohort.coordinator.offsets.records import value_version
from kohort.coordinator.offsets.responses import commit_refused, txn_commit_refused
from kohort.coordinator.offsets.rules import EACH_COMMIT, OffsetGroups, OffsetRules
from kohort.coordinator.offsets.table import CommittedOffset

__all__ = [
    "EACH_COMMIT", "CommittedOffset", "OffsetGroups", "OffsetRules", "OffsetSettings", "Offsets",
    "commit_refused", "txn_commit_refused", "value_version",
]  # fmt: skip
