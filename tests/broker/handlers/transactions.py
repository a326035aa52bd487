"""Requests of transactional producers."""

from __future__ import annotations

from typing import Any

from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.handlers.conftest import Ask


def init(ask: Ask, transactional_id: str | None = "t", version: int = 4, **fields: Any) -> Any:
    fields = {"transaction_timeout_ms": 1000, **fields}
    return ask(InitProducerIdRequest(transactional_id=transactional_id, **fields), version)


def add_partitions(ask: Ask, producer: Any, *places: tuple[str, int], transactional_id: str = "t") -> dict[Any, int]:
    """Adds (topic, partition) pairs to a producer's transaction; returns error codes."""
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=(index,)) for name, index in places],
    )
    return {
        (topic.name, partition.partition_index): partition.partition_error_code
        for topic in ask(request, 3).results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }
