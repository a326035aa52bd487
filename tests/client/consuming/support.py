"""Topics to read from, in a broker of this process."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kohort.client.cluster import Cluster
from kohort.client.consumer import Consumer
from kohort.client.errors import raise_for
from kohort.client.types import Record
from kohort.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kohort.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kohort.protocol.messages.produce import ProduceResponse
from kohort.protocol.primitives import Buffer
from kohort.protocol.records.batch import Compression, assign_offsets, read_header
from kohort.protocol.records.columns import encode_columns
from tests.produce_requests import produce_request

__all__ = ["append", "create_topic", "delete_topic", "produce", "take", "values"]


async def create_topic(cluster: Cluster, name: str, partitions: int = 1, **configs: str) -> None:
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.Topic.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()
        ],
    )
    answer = await cluster.ask_any(CreateTopicsRequest(topics=[topic], timeout_ms=5000), CreateTopicsResponse)
    raise_for(answer.topics[0].error_code, answer.topics[0].error_message)


async def delete_topic(cluster: Cluster, name: str) -> None:
    state = DeleteTopicsRequest.Topic(name=name)
    answer = await cluster.ask_any(DeleteTopicsRequest(topics=[state], timeout_ms=5000), DeleteTopicsResponse)
    raise_for(answer.responses[0].error_code)


async def append(cluster: Cluster, topic: str, batches: Sequence[Buffer], partition: int = 0) -> int:
    """Write batches, and return the offset of the first record."""
    info = await cluster.topic(topic)
    connection = await cluster.any_connection()
    offset = -1
    for batch in batches:
        base_zero = bytearray(batch)
        assign_offsets(base_zero, read_header(base_zero), 0, -1)
        request = produce_request(topic, base_zero, partition, topic_id=info.topic_id)
        answer = await connection.ask(request, ProduceResponse)
        said = answer.responses[0].partition_responses[0]
        raise_for(said.error_code, said.error_message)
        offset = said.base_offset if offset < 0 else offset
    return offset


async def produce(
    cluster: Cluster,
    topic: str,
    values: Sequence[bytes | None],
    partition: int = 0,
    *,
    batch_size: int = 16_384,
    compression: Compression = Compression.NONE,
) -> int:
    """Write records with these values."""
    table = pa.table({"value": pa.array(values, pa.binary()), "timestamp": range(len(values))})
    batches = encode_columns(table, batch_size=batch_size, compression=compression)
    return await append(cluster, topic, batches, partition)


async def take(consumer: Consumer, count: int) -> list[Record]:
    """The next records, in a loop that is left then."""
    records: list[Record] = []
    async for record in consumer:
        records.append(record)
        if len(records) == count:
            break
    return records


def values(records: Sequence[Record]) -> list[object]:
    return [record.value for record in records]
