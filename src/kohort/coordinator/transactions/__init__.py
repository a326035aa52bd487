"""The transaction coordinator: the producer of each transactional id, and the outcome of its transactions.

KIP-98, with KIP-360 (a producer recovers) and KIP-890 (partitions are verified; an epoch for each transaction).
"""

from kohort.coordinator.transactions.errors import PartitionErrors, fencing_error, verification_error
from kohort.coordinator.transactions.listing import list_transactions
from kohort.coordinator.transactions.settings import TransactionSettings
from kohort.coordinator.transactions.shard import TransactionShard, init_idempotent_producer
from kohort.coordinator.transactions.states import TransactionState
from kohort.coordinator.transactions.step import Markers, TransactionStep
from kohort.coordinator.transactions.transaction import ProducerIdAndEpoch, Transaction
from kohort.protocol.topic_partition import TopicPartition

__all__ = [
    "Markers", "PartitionErrors", "ProducerIdAndEpoch", "TopicPartition", "Transaction", "TransactionSettings",
    "TransactionShard", "TransactionState", "TransactionStep", "fencing_error", "init_idempotent_producer",
    "list_transactions", "verification_error",
]  # fmt: skip
