"""DescribeTransactions: API 65."""

from __future__ import annotations

from kohort.protocol.message import Request, Response
from kohort.protocol.schema import Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Request, key=65, versions="0", flexible=0):
    """Asks transaction coordinators for the full state of given transactional ids."""

    transactional_ids: tuple[str, ...] = array(string, "Transactional ids to describe; an empty list yields nothing.")


class DescribeTransactionsResponse(Response, key=65, versions="0", flexible=0):
    """State, producer and partitions of each transactional id that was asked about."""

    class TransactionState(Struct):
        """State of one transactional id, or why it is not known."""

        class Topic(Struct):
            """The transaction's partitions of one topic."""

            topic: str = string("Name of a topic the transaction wrote to.")
            partitions: tuple[int, ...] = array(int32, "Numbers of the topic's partitions in the transaction.")

        error_code: int = int16("0, or why this transactional id can't be described.")
        transactional_id: str = string("The transactional id described.")
        transaction_state: str = string(
            "State by name: Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit ..."
        )
        transaction_timeout_ms: int = int32(
            "How long a transaction may stay open before the coordinator aborts it, in ms."
        )
        transaction_start_time_ms: int = int64("When the open transaction began, in ms since the epoch; -1 = none.")
        producer_id: int = int64("Producer id that the transactional id now maps to.")
        producer_epoch: int = int16("Newest epoch of that producer id; older ones are fenced.")
        topics: list[Topic] = array(
            Topic, "Partitions in the transaction; while it ends, those still lacking a marker."
        )

    throttle_time_ms: int = int32("How long the broker held the request back for a quota, in ms.")
    transaction_states: list[TransactionState] = array(
        TransactionState, "One result for each transactional id that was asked about."
    )
