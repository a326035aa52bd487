"""The topics' keys, and the broker keys of their defaults."""

from __future__ import annotations

import re
from typing import Final

from kohort.broker.config.keys import BOOLEAN, DOUBLE, INT, LIST, LONG, MAX_LONG, STRING, Key, Value, keys_by_name

_DAY_MS: Final = 86_400_000
_ONE_NODE: Final = "Kept, but without effect on a single node: "
_NO_TIERS: Final = "Kept, but without effect, as there is no tiered storage: "
_THROTTLED: Final = re.compile(r"([0-9]+:[0-9]+)?")


def gzip_level(value: Value) -> str | None:
    """Returns what is wrong with a level of gzip, or None."""
    return None if value == -1 or (isinstance(value, int) and 1 <= value <= 9) else "1 to 9 is needed, or -1"


def _throttled(value: Value) -> str | None:
    assert isinstance(value, tuple)
    fine = value == ("*",) or all(map(_THROTTLED.fullmatch, value))
    return None if fine else "a list of PARTITION:BROKER is needed, or *"


def _no_tiers(value: Value) -> str | None:
    return "tiered storage isn't available" if value else None


# fmt: off
TOPIC_KEYS: Final = keys_by_name(
    (
        Key("cleanup.policy", LIST, ("delete",),
            "What becomes of old records: `delete` drops old segments, `compact` keeps each key's newest.",
            valid=("compact", "delete")),
        Key("compression.gzip.level", INT, -1,
            "Level of gzip, where the broker compresses; -1 is gzip's default.", check=gzip_level),
        Key("compression.lz4.level", INT, 9, "Level of lz4, where the broker compresses.", 1, 17),
        Key("compression.type", STRING, "producer",
            "Codec that batches are kept in; `producer` leaves them as they come.",
            valid=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
        Key("compression.zstd.level", INT, 3, "Level of zstd, where the broker compresses.", -131072, 22),
        Key("delete.retention.ms", LONG, _DAY_MS, "How long tombstones are kept in a compacted topic, in ms.", 0),
        Key("errors.deadletterqueue.group.enable", BOOLEAN, False,
            "Whether share groups may write dead letters to the topic."),
        Key("file.delete.delay.ms", LONG, 60_000, "How long the files of a deleted segment may be kept, in ms.", 0),
        Key("flush.messages", LONG, MAX_LONG, "Records after which the log is flushed to the disk.", 1),
        Key("flush.ms", LONG, MAX_LONG, "Time after which the log is flushed to the disk, in ms.", 0),
        Key("follower.replication.throttled.replicas", LIST, (),
            _ONE_NODE + "followers whose replication is slowed down.", check=_throttled),
        Key("index.interval.bytes", INT, 4096, "Bytes of batches between two entries of a segment's index.", 0),
        Key("internal.segment.bytes", INT, None,
            "Size of a segment, below what segment.bytes allows; for tests.", internal=True),
        Key("leader.replication.throttled.replicas", LIST, (),
            _ONE_NODE + "leaders whose replication is slowed down.", check=_throttled),
        Key("local.retention.bytes", LONG, -2, _NO_TIERS + "bytes of a partition kept on the local disk.", -2),
        Key("local.retention.ms", LONG, -2, _NO_TIERS + "time for which records are kept on the local disk.", -2),
        Key("max.compaction.lag.ms", LONG, MAX_LONG, "Age at which a record has to be compacted, in ms.", 1),
        Key("max.message.bytes", INT, 1_048_588, "Size of the largest batch of records, in bytes.", 0),
        Key("message.timestamp.after.max.ms", LONG, 3_600_000,
            "How far a record's timestamp may be ahead of the broker's clock, in ms.", 0),
        Key("message.timestamp.before.max.ms", LONG, MAX_LONG,
            "How far a record's timestamp may be behind the broker's clock, in ms.", 0),
        Key("message.timestamp.type", STRING, "CreateTime",
            "Whose clock stamps the records: the producer's or the broker's.", valid=("CreateTime", "LogAppendTime")),
        Key("min.cleanable.dirty.ratio", DOUBLE, 0.5,
            "Share of a log not yet compacted that makes a compaction worth while.", 0, 1),
        Key("min.compaction.lag.ms", LONG, 0, "Age below which a record isn't compacted, in ms.", 0),
        Key("min.insync.replicas", INT, 1,
            "Replicas that must have a record before acks=all is answered; there is one.", 1),
        Key("preallocate", BOOLEAN, False,
            "Kept, but without effect: whether segments are preallocated when they are created."),
        Key("remote.log.copy.disable", BOOLEAN, False, _NO_TIERS + "whether segments stop being copied there."),
        Key("remote.log.delete.on.disable", BOOLEAN, False, _NO_TIERS + "whether copies go when it is switched off."),
        Key("remote.storage.enable", BOOLEAN, False,
            "Whether segments are copied to tiered storage; not available.", check=_no_tiers),
        Key("retention.bytes", LONG, -1,
            "Size of a partition above which old segments are deleted, in bytes; -1 is no limit."),
        Key("retention.ms", LONG, 7 * _DAY_MS, "Age above which old segments are deleted, in ms; -1 is no limit.", -1),
        Key("segment.bytes", INT, 1 << 30, "Size at which a new segment is rolled, in bytes.", 1 << 20),
        Key("segment.index.bytes", INT, 10 << 20, "Size of an index at which a new segment is rolled, in bytes.", 4),
        Key("segment.jitter.ms", LONG, 0,
            "Kept, but without effect: random time by which a segment may end early, in ms.", 0),
        Key("segment.ms", LONG, 7 * _DAY_MS, "Age at which a new segment is rolled, in ms.", 1),
        Key("unclean.leader.election.enable", BOOLEAN, False, _ONE_NODE + "whether a replica that is behind may lead."),
    )
)
# fmt: on
"""Kafka 4.2's topic keys, with its defaults."""

BROKER_KEY_OF: Final = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The broker key for the default of each topic key. A topic key without one has a fixed default."""
