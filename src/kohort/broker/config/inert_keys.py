"""Keys that are taken, checked and described as by Kafka, also at run time, and change nothing here.

Tools and operators set them by habit: `kafka-reassign-partitions --throttle` slows replication down, and thread pools
are resized under load. One event loop without followers has neither.
"""

from __future__ import annotations

from typing import Final

from kohort.broker.config.keys import INT, LONG, Change, Key, keys_by_name

_ONE_LOOP: Final = "the broker is one event loop and sizes its own buffers"
_ONE_REPLICA: Final = "there is one replica, on this node"
_IDLE: Final = "Taken, but without effect: "


def _threads(name: str, default: int, doc: str, low: int = 1) -> Key:
    return Key(name, INT, default, f"{_IDLE}{doc}.", low, change=Change.CLUSTER)


def _rate(name: str, doc: str) -> Key:
    # Kafka has a default for none, and doesn't list a rate until it is set.
    return Key(name, LONG, None, f"{_IDLE}{doc}, in bytes per second.", 0, change=Change.CLUSTER, internal=True)


THREAD_KEYS: Final = keys_by_name(
    (
        _threads("background.threads", 10, "threads for background tasks"),
        _threads("log.cleaner.threads", 1, "threads that compact logs", low=0),
        _threads("num.io.threads", 8, "threads that handle requests"),
        _threads("num.network.threads", 3, "threads of each listener that read and write"),
        _threads("num.recovery.threads.per.data.dir", 2, "threads that recover a directory's logs at start"),
        _threads("num.replica.fetchers", 1, "threads that fetch from another node"),
    )
)
"""Sizes of thread pools. At run time they change by at most the factor 2 at a time, as in Kafka."""

THROTTLE_KEYS: Final = keys_by_name(
    (
        _rate("follower.replication.throttled.rate", "how fast throttled followers may fetch"),
        _rate("leader.replication.throttled.rate", "how fast leaders may send to throttled followers"),
        _rate(
            "replica.alter.log.dirs.io.max.bytes.per.second", "how fast replicas may move between directories of a node"
        ),
    )
)
"""Rates that a throttled reassignment sets, and takes away when it is verified."""

INERT_KEYS: Final = THREAD_KEYS | THROTTLE_KEYS

INERT_REASONS: Final = {
    **dict.fromkeys(THREAD_KEYS, _ONE_LOOP),
    **dict.fromkeys(("num.replica.fetchers", *THROTTLE_KEYS), _ONE_REPLICA),
}
"""Why each key changes nothing, as the end of a sentence."""
