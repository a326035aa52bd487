"""Produce requests with one batch, as clients send them."""

from __future__ import annotations

from uuid import UUID

from kohort.protocol.messages.produce import ProduceRequest
from kohort.protocol.primitives import Buffer

__all__ = ["produce_request"]

_NO_ID = UUID(int=0)


def produce_request(
    topic: str,
    batch: Buffer,
    partition: int = 0,
    *,
    acks: int = -1,
    transactional_id: str | None = None,
    topic_id: UUID = _NO_ID,
) -> ProduceRequest:
    """A request with a batch for one partition; versions from 13 on take the topic's id instead of its name."""
    kind = ProduceRequest.TopicData
    data = [kind.PartitionData(index=partition, records=bytes(batch))]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=5000,
        topic_data=[kind(name=topic, topic_id=topic_id, partition_data=data)],
    )
