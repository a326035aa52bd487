"""Takes the acknowledgements of a request: to each partition's share partition, all at once, and one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from kohort.broker.reply import Reply
from kohort.broker.share.acknowledgements import Batch, batches_are_valid
from kohort.broker.share.partitions import SharePartitions
from kohort.broker.share.sessions import PartitionKey
from kohort.coordinator.share_partition import AckBatch
from kohort.protocol.errors import ErrorCode

Outcomes = dict[PartitionKey, ErrorCode]
"""What came of the acknowledgements of each partition."""


def acknowledge(
    shares: SharePartitions,
    group_id: str,
    member_id: str,
    requested: Iterable[tuple[PartitionKey, Sequence[Batch]]],
    *,
    error_of: Callable[[PartitionKey], ErrorCode],
    version: int,
    is_renew_ack: bool,
) -> Reply[Outcomes]:
    """Takes acknowledgements, and answers when all that are sound are persisted, or have failed.

    Partitions without acknowledgements are in the answer only if others have some.

    Args:
        requested: a partition that is there twice counts as the last time.
        error_of: the error of a partition that isn't there, or that the member may not read; UNKNOWN_TOPIC_ID comes
            before faults of its acknowledgements, the others after them.
    """
    outcomes: Outcomes = {}
    sound: dict[PartitionKey, Sequence[Batch]] = {}
    empty: Outcomes = {}
    for key, batches in dict(requested).items():
        error = error_of(key)
        if error is not ErrorCode.UNKNOWN_TOPIC_ID and not batches_are_valid(
            batches, version=version, is_renew_ack=is_renew_ack
        ):
            error = ErrorCode.INVALID_REQUEST
        if error:
            outcomes[key] = error
        elif batches:
            sound[key] = batches
        else:
            empty[key] = ErrorCode.NONE
    reply: Reply[Outcomes] = Reply()
    if not sound:
        reply(outcomes)
        return reply
    outcomes |= empty
    _submit(shares, group_id, member_id, sound, outcomes, reply)
    return reply


def _submit(
    shares: SharePartitions,
    group_id: str,
    member_id: str,
    sound: Mapping[PartitionKey, Sequence[Batch]],
    outcomes: Outcomes,
    reply: Reply[Outcomes],
) -> None:
    waiting = set(sound)

    def done(key: PartitionKey, code: ErrorCode) -> None:
        outcomes[key] = code
        waiting.remove(key)
        if code:
            shares.counters.failed_acknowledgements += 1
        else:
            shares.counters.acknowledged(sound[key])
        if not waiting:
            reply(outcomes)

    for key, batches in sound.items():
        hosted = shares.get(group_id, key)
        if hosted is None:
            done(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            hosted.acknowledge(
                member_id,
                [AckBatch(batch.first_offset, batch.last_offset, batch.acknowledge_types) for batch in batches],
                lambda code, key=key: done(key, code),  # type: ignore[misc]
            )
