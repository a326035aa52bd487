"""Settings of the share coordinator, by Kafka's keys."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ShareStateSettings:
    """The settings, with Kafka's defaults.

    Attributes:
        share_coordinator_snapshot_update_records_per_snapshot: updates of a share partition between two snapshots.
        share_coordinator_cold_partition_snapshot_interval_ms: age of a snapshot, in ms, after which another is written,
            so that the log before it can be deleted.
    """

    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300_000
