"""The offsets that groups commit: stored, in transactions or not, fetched, deleted and expired."""

from kohort.coordinator.offsets.groups import EACH_COMMIT, Groups
from kohort.coordinator.offsets.offsets import Offsets, OffsetSettings, commit_refused, txn_commit_refused
from kohort.coordinator.offsets.records import value_version
from kohort.coordinator.offsets.table import CommittedOffset

__all__ = [
    "EACH_COMMIT", "CommittedOffset", "Groups", "OffsetSettings", "Offsets", "commit_refused", "txn_commit_refused",
    "value_version",
]  # fmt: skip
