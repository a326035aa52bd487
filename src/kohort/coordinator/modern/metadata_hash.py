"""A fingerprint of the topics that a group depends on, by which it notices that one of them has changed (KIP-1101)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable

from kohort.coordinator.modern.cluster import Cluster


def metadata_hash(names: Iterable[str], cluster: Cluster) -> int:
    """A fingerprint of topics with their ids and partitions; 0 if there are none.

    It changes when one of them comes, goes, grows, or is replaced by another of the same name; 64 bits, signed. Takes
    time in proportion to the topics.
    """
    hashed = hashlib.blake2b(digest_size=8)
    known = 0
    for name in sorted(names):
        count, topic_id = cluster.partitions(name), cluster.topic_id(name)
        if count is not None and topic_id is not None:
            known += 1
            encoded = name.encode()
            hashed.update(struct.pack(">Hi", len(encoded), count) + encoded + topic_id.bytes)
    return int.from_bytes(hashed.digest(), "big", signed=True) if known else 0
