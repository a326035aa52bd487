"""The broker's log keys: defaults of topics, directories, cleaner, and intervals."""

from __future__ import annotations

from typing import Final

from kohort.broker.config.keys import BOOLEAN, INT, LIST, LONG, MAX_LONG, Change, Key, Value, keys_by_name
from kohort.broker.config.topic_keys import BROKER_KEY_OF, TOPIC_KEYS

_MINUTE: Final = 60_000
_HOUR: Final = 3_600_000


def _retention(value: Value) -> str | None:
    return "it can't be 0; -1 is no limit" if value == 0 else None


# fmt: off
_WITH_SYNONYMS: Final = (
    Key("log.retention.ms", LONG, None,
        "Topics' default of retention.ms: age above which old segments are deleted, in ms.", check=_retention,
        change=Change.CLUSTER, synonyms=(("log.retention.minutes", _MINUTE), ("log.retention.hours", _HOUR))),
    Key("log.retention.minutes", INT, None,
        "As log.retention.ms, in minutes; used where that isn't set.", check=_retention),
    Key("log.retention.hours", INT, 168,
        "As log.retention.ms, in hours; used where neither that nor log.retention.minutes is set.", check=_retention),
    Key("log.roll.ms", LONG, None,
        "Topics' default of segment.ms: age at which a new segment is rolled, in ms.", 1, change=Change.CLUSTER,
        synonyms=(("log.roll.hours", _HOUR),)),
    Key("log.roll.hours", INT, 168, "As log.roll.ms, in hours; used where that isn't set.", 1),
    Key("log.roll.jitter.ms", LONG, None,
        "Topics' default of segment.jitter.ms; without effect.", 0, change=Change.CLUSTER,
        synonyms=(("log.roll.jitter.hours", _HOUR),)),
    Key("log.roll.jitter.hours", INT, 0, "As log.roll.jitter.ms, in hours.", 0),
    Key("log.flush.interval.ms", LONG, None,
        "Topics' default of flush.ms: time after which a log is flushed to the disk, in ms.", 0, change=Change.CLUSTER,
        synonyms=(("log.flush.scheduler.interval.ms", 1),)),
    Key("log.flush.scheduler.interval.ms", LONG, MAX_LONG, "As log.flush.interval.ms, used where that isn't set."),
)

_STORAGE: Final = (
    Key("log.dirs", LIST, None, "The directory that holds the data; only one is possible."),
    Key("log.dir", LIST, ("/tmp/kafka-logs",), "As log.dirs; used where that isn't set."),
    Key("log.retention.check.interval.ms", LONG, 300_000, "Interval of checks for segments to delete, in ms.", 1),
    Key("log.flush.offset.checkpoint.interval.ms", INT, 60_000,
        "Interval of checkpoints of flushed offsets, in ms.", 0),
    Key("log.cleaner.enable", BOOLEAN, True, "Whether compacted topics are compacted."),
    Key("log.cleaner.backoff.ms", LONG, 15_000,
        "Interval of checks for logs to compact, in ms.", 0, change=Change.CLUSTER),
    Key("log.scrub.interval.ms", LONG, 86_400_000,
        "Interval of comparing the checksums of all batches there are, in ms; the first time soon after a start.", 1),
)
# fmt: on

_SPECIAL: Final = frozenset(key.name for key in _WITH_SYNONYMS)


def _default_of(topic_key: str, name: str) -> Key:
    key = TOPIC_KEYS[topic_key]
    return key._replace(name=name, change=Change.CLUSTER, doc=f"Topics' default of {topic_key}. {key.doc}")


LOG_KEYS: Final = keys_by_name(
    _WITH_SYNONYMS,
    _STORAGE,
    (_default_of(topic_key, name) for topic_key, name in BROKER_KEY_OF.items() if name not in _SPECIAL),
)
"""The broker's log keys."""
