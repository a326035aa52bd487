"""AddPartitionsToTxn: API 24."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, boolean, int16, int32, int64, string


class AddPartitionsToTxnTopic(Struct):
    """Partitions of one topic."""

    name: str = string("Name of the topic to write to.")
    partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions that take part.")


class AddPartitionsToTxnPartitionResult(Struct):
    """What became of one partition."""

    partition_index: int = int32("The partition's number within its topic.")
    partition_error_code: int = int16("0, or why this partition failed.")


class AddPartitionsToTxnTopicResult(Struct):
    """Outcomes of one topic."""

    name: str = string("Name of the topic.")
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult, "Outcomes of the topic's partitions."
    )


class AddPartitionsToTxnRequest(Request, key=24, versions="0-5", flexible=3):
    """Registers partitions with transactions, or verifies that they are registered.

    - v1: same layout; brokers answer first and throttle afterwards
    - v2: same layout; may answer PRODUCER_FENCED
    - v3: flexible; the last version that clients send
    - v4: brokers only: several transactions at once, and VerifyOnly
    - v5: same layout; may answer TRANSACTION_ABORTABLE (KIP-890)
    """

    class Transaction(Struct):
        transactional_id: str = string("Transactional id whose open transaction is meant.")
        producer_id: int = int64("Producer id the transactional id has at present.")
        producer_epoch: int = int16("Epoch of that producer id; an older one is fenced.")
        verify_only: bool = boolean("True = add nothing, only check that the partitions are in the transaction.")
        topics: list[AddPartitionsToTxnTopic] = array(
            AddPartitionsToTxnTopic, "Partitions to add or to verify, by topic."
        )

    transactions: list[Transaction] = array(Transaction, "Transactions to extend or verify; sent by brokers.", since=4)
    v3_and_below_transactional_id: str = string(
        "The client's transactional id, whose transaction is extended.", until=3
    )
    v3_and_below_producer_id: int = int64("Producer id the transactional id has at present.", until=3)
    v3_and_below_producer_epoch: int = int16("Epoch of that producer id; an older one is fenced.", until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(
        AddPartitionsToTxnTopic, "Partitions the client is about to produce to, by topic.", until=3
    )


class AddPartitionsToTxnResponse(Response, key=24, versions="0-5", flexible=3):
    """Says for each partition whether it is part of the transaction now.

    - v3: flexible
    - v4: ErrorCode and ResultsByTransaction; ResultsByTopicV3AndBelow is gone
    """

    class ResultsByTransaction(Struct):
        transactional_id: str = string("Transactional id these outcomes belong to.")
        topic_results: list[AddPartitionsToTxnTopicResult] = array(
            AddPartitionsToTxnTopicResult, "Outcomes of the transaction's partitions, by topic."
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    error_code: int = int16("0, or the error that failed the whole request.", since=4, ignorable=True)
    results_by_transaction: list[ResultsByTransaction] = array(
        ResultsByTransaction, "Outcomes of a batched request, by transaction.", since=4
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, "Outcomes of the client's only transaction, by topic.", until=3
    )
