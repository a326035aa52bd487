"""The transaction coordinator: who writes under a transactional id, and how its transactions end.

After KIP-98, with KIP-360 (a producer recovers) and KIP-890 (partitions are verified; an epoch for each transaction).
"""

from kohort.coordinator.transactions.errors import PartitionErrors, fenced_for, verification_error
from kohort.coordinator.transactions.listing import list_transactions
from kohort.coordinator.transactions.settings import TransactionSettings
from kohort.coordinator.transactions.shard import TransactionShard, give_producer_id
from kohort.coordinator.transactions.states import TransactionState
from kohort.coordinator.transactions.step import Markers, TransactionStep
from kohort.coordinator.transactions.transaction import ProducerIdAndEpoch, Transaction
from kohort.protocol.topic_partition import TopicPartition

__all__ = [
    "Markers", "PartitionErrors", "ProducerIdAndEpoch", "TopicPartition", "Transaction", "TransactionSettings",
    "TransactionShard", "TransactionState", "TransactionStep", "fenced_for", "give_producer_id", "list_transactions",
    "verification_error",
]  # fmt: skip
