"""AddPartitionsToTxn: partitions of a transaction."""

from __future__ import annotations

from kohort.protocol.errors import ErrorCode
from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tests.broker.handlers.served import Run, ask


def test_clients_add_no_internal_topics_to_transactions(with_server: Run) -> None:
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="__consumer_offsets", partitions=(0,))],
    )
    (topic,) = ask(with_server, request, 3).results_by_topic_v3_and_below
    assert topic.results_by_partition[0].partition_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
