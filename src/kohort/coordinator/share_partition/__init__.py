"""Share partitions (KIP-932): what a share group has in flight of one partition, as a pure state machine.

`SharePartition` is the face of it; `states.py` has the table of states and events.
"""

from kohort.coordinator.share_partition.acknowledging import AckBatch
from kohort.coordinator.share_partition.acquiring import Acquired
from kohort.coordinator.share_partition.changes import Cause, Change, DeadLetter
from kohort.coordinator.share_partition.partition import InFlightRecords, SharePartition
from kohort.coordinator.share_partition.persisted import UNKNOWN_START_OFFSET, PersistedState, StateBatch
from kohort.coordinator.share_partition.settings import AcquireMode, SharePartitionSettings
from kohort.coordinator.share_partition.states import AcknowledgeType, RecordState

__all__ = [
    "UNKNOWN_START_OFFSET",
    "AckBatch",
    "AcknowledgeType",
    "AcquireMode",
    "Acquired",
    "Cause",
    "Change",
    "DeadLetter",
    "InFlightRecords",
    "PersistedState",
    "RecordState",
    "SharePartition",
    "SharePartitionSettings",
    "StateBatch",
]
