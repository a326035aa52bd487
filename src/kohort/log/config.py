"""The configuration of a log: a topic's settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kohort.protocol.records.batch import Compression

_MAX_INT64: Final = 2**63 - 1
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


@dataclass(frozen=True)
class LogConfig:
    """Kafka's topic settings, dots written as underscores, with Kafka's defaults.

    Sizes are in bytes and times in ms; -1 is "no limit" for retention.

    Attributes:
        segment_bytes, segment_ms: a segment is rolled before it gets larger, or when its first batch is older.
        segment_index_bytes: a segment is rolled when an index reaches this size.
        index_interval_bytes: bytes of batches between two entries of the index.
        retention_ms, retention_bytes: age and size limits, if the cleanup policy has "delete".
        cleanup_policy: any of "delete" and "compact".
        delete_retention_ms: how long tombstones and transaction markers are kept after their first compaction.
        min_compaction_lag_ms, max_compaction_lag_ms: age from which a segment may, and must, be compacted.
        min_cleanable_dirty_ratio: share of bytes not yet compacted from which a compaction is due.
        max_message_bytes: largest batch.
        message_timestamp_type: "CreateTime" or "LogAppendTime".
        message_timestamp_before_max_ms, message_timestamp_after_max_ms: how far a record's timestamp may differ.
        compression_type: "producer", "uncompressed", or the codec that batches are rewritten with.
        compression_level: level of that codec, None for its default.
        flush_messages, flush_ms: records and time after which a flush is due (`Log.flush_due`).
        file_delete_delay_ms: Kafka's delay before the files of a deleted segment are removed. Nothing reads them here,
            so they are removed at once.
        producer_id_expiration_ms: how long the state of an idle producer is kept (a broker's setting in Kafka).
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
        """Whether the log is compacted; every record must have a key then."""
        return "compact" in self.cleanup_policy

    @cached_property
    def delete(self) -> bool:
        """Whether old segments are deleted by retention."""
        return "delete" in self.cleanup_policy

    @cached_property
    def log_append_time(self) -> bool:
        """Whether records get the broker's time."""
        return self.message_timestamp_type == "LogAppendTime"

    @cached_property
    def codec(self) -> Compression | None:
        """The codec of every batch; None to keep the producer's."""
        match self.compression_type:
            case "producer":
                return None
            case "uncompressed":
                return Compression.NONE
            case name:
                return Compression[name.upper()]

    @cached_property
    def roll_ms(self) -> int:
        """Age of a segment's first batch at which it is rolled, by segment.ms and max.compaction.lag.ms."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms
