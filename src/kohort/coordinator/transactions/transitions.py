"""The transitions that a producer's requests cause: pure rules, from the state of a transactional id to the next.

Here producers are fenced: PRODUCER_FENCED. A refusal is a `KafkaError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kohort.coordinator.transactions.states import IDLE, PREPARED, TransactionState
from kohort.coordinator.transactions.transaction import (
    LAST_EPOCH,
    NONE,
    TRANSACTIONS_V2,
    ProducerIdAndEpoch,
    Transaction,
)
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.topic_partition import TopicPartition


def prepare_init_producer_id(
    transaction: Transaction,
    held: ProducerIdAndEpoch | None,
    before: ProducerIdAndEpoch | None,
    timeout_ms: int,
    now: int,
    new_producer_id: Callable[[], int],
) -> Transaction:
    """InitProducerId: a producer starts, or starts over, and fences earlier producers of the transactional id.

    Args:
        transaction: the id's state; a new one has no epoch.
        held: the id and epoch that the producer has and wants bumped (KIP-360); None if it has none.
        before: the id and epoch that the producer may still have if it didn't get the answer with the current ones.
        timeout_ms: how long its transactions may stay open.
        now: ms since 1970.
        new_producer_id: gives an unused producer id.

    Returns:
        The state Empty; or PrepareAbort if a transaction must be aborted first, for which the producer has to wait.

    Raises:
        KafkaError: CONCURRENT_TRANSACTIONS while a transaction ends; PRODUCER_FENCED if another one came after `held`.
    """
    if held is not None and transaction.producer_epoch != NONE and held not in (transaction.producer, before):
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state is TransactionState.ONGOING:
        return transaction.fenced(now)
    if held is not None and held == before and transaction.producer_epoch <= LAST_EPOCH:
        return transaction.with_producer(transaction.producer, timeout_ms, now)
    if transaction.exhausted:
        return transaction.with_producer(ProducerIdAndEpoch(new_producer_id(), 0), timeout_ms, now)
    return transaction.with_producer(
        ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch + 1), timeout_ms, now
    )


def check_producer(transaction: Transaction | None, producer: ProducerIdAndEpoch) -> Transaction:
    """Returns the transaction, if this producer may write in it.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, or CONCURRENT_TRANSACTIONS while one ends.
    """
    if transaction is None or transaction.producer_id != producer.producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer.epoch or producer.epoch > LAST_EPOCH:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    if transaction.state in PREPARED:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return transaction


def prepare_add_partitions(
    transaction: Transaction | None,
    producer: ProducerIdAndEpoch,
    partitions: Iterable[TopicPartition],
    client_version: int,
    now: int,
) -> Transaction:
    """AddPartitionsToTxn, AddOffsetsToTxn: a producer writes to partitions; the first ones open a transaction.

    Returns:
        The next state; the same object if it has all the partitions.

    Raises:
        KafkaError: what `check_producer` raises.
    """
    transaction = check_producer(transaction, producer)
    if transaction.state is TransactionState.ONGOING and transaction.partitions.issuperset(partitions):
        return transaction
    return transaction.with_partitions(partitions, client_version, now)


def prepare_end_txn(
    transaction: Transaction | None,
    producer: ProducerIdAndEpoch,
    *,
    commit: bool,
    client_version: int,
    now: int,
    new_producer_id: Callable[[], int],
) -> Transaction:
    """EndTxn: a producer commits or aborts.

    In transactions V2 the end takes the next epoch, or the next producer id if there is none. So a request with the
    epoch before it is a repeated one, and a request with the current epoch a new one: an abort with nothing to abort.

    Returns:
        The next state; the same object if the request was carried out before.

    Raises:
        KafkaError: INVALID_PRODUCER_ID_MAPPING; PRODUCER_FENCED; INVALID_TXN_STATE if nothing is open, or the outcome
            is the other one; CONCURRENT_TRANSACTIONS while the transaction ends in this way.
    """
    if transaction is None:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    bumps = client_version >= TRANSACTIONS_V2
    again = bumps and producer == transaction.before_bump
    if not again:
        if transaction.producer_id != producer.producer_id:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer.epoch or producer.epoch > LAST_EPOCH:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        if transaction.client_version >= TRANSACTIONS_V2 and transaction.state in PREPARED:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)

    if transaction.state in PREPARED:
        if commit is not (transaction.state is TransactionState.PREPARE_COMMIT):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    if transaction.state in IDLE:
        outcome = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        if again or not bumps:
            if transaction.state is not outcome:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
            return transaction
        if commit:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE)
    next_id = new_producer_id() if bumps and transaction.exhausted else NONE
    return transaction.prepared(commit=commit, client_version=client_version, now=now, next_producer_id=next_id)
