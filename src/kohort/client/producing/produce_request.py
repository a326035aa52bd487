"""The produce request for batches, and the parts of its response for each batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from kohort.client.producing.batch import ProducerBatch
from kohort.client.types import Broker, TopicInfo
from kohort.protocol.messages.produce import ProduceRequest, ProduceResponse

PartitionResponse = ProduceResponse.TopicResponse.PartitionResponse

_NO_ID = UUID(int=0)


def produce_request(
    batches: Sequence[ProducerBatch],
    topics: Mapping[str, TopicInfo],
    *,
    acks: int,
    timeout_ms: int,
    transactional_id: str | None,
) -> tuple[ProduceRequest, bool]:
    """Returns a request with these batches, one a partition, and whether all topics have ids, as version 13 needs."""
    by_topic: dict[str, list[ProduceRequest.TopicData.PartitionData]] = {}
    for batch in batches:
        data = ProduceRequest.TopicData.PartitionData(index=batch.target.partition, records=batch.encoded)
        by_topic.setdefault(batch.target.topic, []).append(data)
    with_ids = True
    topic_data = []
    for name, partitions in by_topic.items():
        known = topics.get(name)
        topic_id = _NO_ID if known is None else known.topic_id
        with_ids = with_ids and topic_id != _NO_ID
        topic_data.append(ProduceRequest.TopicData(name=name, topic_id=topic_id, partition_data=partitions))
    request = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=topic_data
    )  # fmt: skip
    return request, with_ids


def responses_by_batch(
    batches: Sequence[ProducerBatch], request: ProduceRequest, response: ProduceResponse
) -> Iterator[tuple[ProducerBatch, PartitionResponse | None]]:
    """Yields each batch with its part of the response, None if there is none."""
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    found = {
        (topic.name or names.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }
    for batch in batches:
        yield batch, found.get(batch.target)


def endpoints(response: ProduceResponse) -> dict[int, Broker]:
    """Returns the addresses of new leaders in the response (KIP-951)."""
    return {each.node_id: Broker(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints}
