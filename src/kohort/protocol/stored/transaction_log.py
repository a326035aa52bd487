"""Records of type 0 in `__transaction_state`: transaction log."""

from __future__ import annotations

from kohort.protocol.message import Data
from kohort.protocol.schema import Struct, array, int8, int16, int32, int64, string


class TransactionLogKey(Data, key=0, versions="0"):
    """Key: one transactional id."""

    transactional_id: str = string("The transactional.id that the producer is configured with.")


class TransactionLogValue(Data, key=0, versions="0-1", flexible=1):
    """Value: the producer behind a transactional id, and the state of its transaction.

    - v1: flexible; the other producer ids, the next epoch and the client's version are tagged fields
    """

    class TransactionPartition(Struct):
        """Partitions of one topic that the transaction wrote to."""

        topic: str = string("Name of the topic written to.")
        partition_ids: tuple[int, ...] = array(int32, "Numbers of the partitions written to in this topic.")

    producer_id: int = int64("Id that the producer writes with now.")
    previous_producer_id: int = int64(
        "Id the last completed transaction was written with; -1 = none.", since=1, default=-1, tag=0
    )
    next_producer_id: int = int64(
        "Id handed to the producer for what follows this transaction; -1 = none.", since=1, default=-1, tag=1
    )
    producer_epoch: int = int16("Epoch that goes with ProducerId; older ones are fenced.")
    next_producer_epoch: int = int16("Epoch that goes with NextProducerId; -1 = none.", since=1, default=-1, tag=3)
    transaction_timeout_ms: int = int32("How long a transaction may stay open before it is aborted, in ms.")
    transaction_status: int = int8("0 empty, 1 open, 2/3 to commit/abort, 4/5 committed/aborted, 6 dead, 7 to fence.")
    transaction_partitions: list[TransactionPartition] | None = array(
        TransactionPartition,
        "Partitions that need a marker at the end; null in the empty state.",
        nullable=True,
        default=[],
    )
    transaction_last_update_timestamp_ms: int = int64("When this state was last changed, in ms since 1970.")
    transaction_start_timestamp_ms: int = int64("When the transaction began, in ms since 1970; -1 = it has not.")
    client_transaction_version: int = int16(
        "Transaction version: 0 or 1 = classic, 2 = an epoch bump in every transaction.", since=1, tag=2
    )
