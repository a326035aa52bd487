"""A topic's settings, as far as its logs are concerned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kohort.protocol.records.batch import Compression

__all__ = ["LogConfig"]

_MAX_INT64: Final = 2**63 - 1
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


@dataclass(frozen=True)
class LogConfig:
    """Kafka's topic settings, dots written as underscores, with Kafka's defaults.

    Sizes are in bytes and times in ms; -1 is "no limit" for retention.

    Attributes:
        segment_bytes, segment_ms: a segment is rolled before it grows larger, or when its first batch is older.
        segment_index_bytes: size of an index that makes its segment roll.
        index_interval_bytes: bytes of batches between two entries of the index.
        retention_ms, retention_bytes: what may be deleted, where the policy is "delete".
        cleanup_policy: any of "delete" and "compact".
        delete_retention_ms: how long tombstones and transaction markers outlive the compaction that first met them.
        min_compaction_lag_ms, max_compaction_lag_ms: age from which a segment may, and must, be compacted.
        min_cleanable_dirty_ratio: share of bytes not yet compacted that makes a compaction worth its while.
        max_message_bytes: largest batch.
        message_timestamp_type: "CreateTime" or "LogAppendTime".
        message_timestamp_before_max_ms, message_timestamp_after_max_ms: how far a record's timestamp may differ.
        compression_type: "producer", "uncompressed", or the codec that batches are rewritten with.
        compression_level: level of that codec, None for its default.
        flush_messages, flush_ms: records and time after which the log wants a flush (`Log.flush_due`).
        file_delete_delay_ms: Kafka's delay before the files of a deleted segment go. Nothing reads them any more when
            they are deleted here, so they go at once.
        producer_id_expiration_ms: how long a producer that is silent is remembered (a broker's setting in Kafka).
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    delete_retention_ms: int = _DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _MAX_INT64
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1_048_588
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = _MAX_INT64
    message_timestamp_after_max_ms: int = _HOUR_MS
    compression_type: str = "producer"
    compression_level: int | None = None
    flush_messages: int = _MAX_INT64
    flush_ms: int = _MAX_INT64
    file_delete_delay_ms: int = 60_000
    producer_id_expiration_ms: int = _DAY_MS

    @cached_property
    def compact(self) -> bool:
        """Whether the newest record of each key is kept, and every record must have one."""
        return "compact" in self.cleanup_policy

    @cached_property
    def delete(self) -> bool:
        """Whether old segments are deleted by age and size."""
        return "delete" in self.cleanup_policy

    @cached_property
    def log_append_time(self) -> bool:
        """Whether the broker's clock stamps the records."""
        return self.message_timestamp_type == "LogAppendTime"

    @cached_property
    def codec(self) -> Compression | None:
        """The codec that every batch must have; None to take what the producer sent."""
        match self.compression_type:
            case "producer":
                return None
            case "uncompressed":
                return Compression.NONE
            case name:
                return Compression[name.upper()]

    @cached_property
    def roll_ms(self) -> int:
        """Age of a segment's first batch at which it rolls: a compacted log rolls in time for its maximum lag."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms
