"""Acknowledgements as requests carry them: which partitions' are sound, and what is wrong with the others'."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kohort.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from kohort.protocol.messages.share_fetch import ShareFetchRequest

Batch = (
    ShareAcknowledgeRequest.Topic.Partition.AcknowledgementBatch
    | ShareFetchRequest.Topic.Partition.AcknowledgementBatch
)

GAP: Final = 0
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4

RENEWABLE: Final = 2
"""First version in which locks can be renewed (KIP-1222)."""


def batches_are_valid(batches: Sequence[Batch], *, version: int, is_renew_ack: bool) -> bool:
    """Whether a partition's acknowledgements are in order and complete; else the answer is INVALID_REQUEST.

    Each batch has one type for all its offsets, or one for each. Batches are in the order of their offsets and don't
    overlap, but for an offset that ends one and begins the next, which is refused for its state. Renewals need a
    request that says it has some.
    """
    highest = RENEW if version >= RENEWABLE else REJECT
    last_before = -1
    for batch in batches:
        types = batch.acknowledge_types
        if batch.first_offset > batch.last_offset or batch.first_offset < last_before:
            return False
        if not types or (len(types) > 1 and batch.last_offset - batch.first_offset != len(types) - 1):
            return False
        if min(types) < GAP or max(types) > highest or (RENEW in types and not is_renew_ack):
            return False
        last_before = batch.last_offset
    return True


def counts_by_type(batches: Iterable[Batch]) -> list[int]:
    """How many offsets are acknowledged with each type."""
    counts = [0] * (RENEW + 1)
    for batch in batches:
        if len(batch.acknowledge_types) == 1:
            counts[batch.acknowledge_types[0]] += batch.last_offset - batch.first_offset + 1
        else:
            for kind in batch.acknowledge_types:
                counts[kind] += 1
    return counts
