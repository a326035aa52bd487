"""The share coordinator: the delivery state of share partitions, kept in `__share_group_state` (KIP-932).

A share partition is one partition as one share group consumes it. Its leader reads the state when it begins, and writes
what has changed; the group coordinator initializes and deletes it. What is written becomes an update, and after some
updates a snapshot, before which nothing is needed any more.
"""

from kohort.coordinator.share_state.batches import StateBatch, combine
from kohort.coordinator.share_state.results import Outcome, ReadOutcome, Summary
from kohort.coordinator.share_state.settings import ShareStateSettings
from kohort.coordinator.share_state.shard import ShareStateShard
from kohort.coordinator.share_state.state import (
    NO_DELIVERY_COMPLETE_COUNT,
    NO_EPOCH,
    NO_START_OFFSET,
    SharePartitionKey,
    ShareState,
)

__all__ = [
    "NO_DELIVERY_COMPLETE_COUNT", "NO_EPOCH", "NO_START_OFFSET", "Outcome", "ReadOutcome", "SharePartitionKey",
    "ShareState", "ShareStateSettings", "ShareStateShard", "StateBatch", "Summary", "combine",
]  # fmt: skip
