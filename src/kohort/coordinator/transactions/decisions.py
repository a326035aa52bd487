"""How the requests of a producer are judged: pure rules, from the state of its transactional id to the next.

A refusal is a `KafkaError`.
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

__all__ = ["check_open", "decide_end", "decide_extension", "decide_start"]


def decide_start(
    transaction: Transaction,
    held: ProducerIdAndEpoch | None,
    before: ProducerIdAndEpoch | None,
    timeout_ms: int,
    now: int,
    new_producer_id: Callable[[], int],
) -> Transaction:
    """A producer starts, or starts over, and fences whoever used the transactional id before (InitProducerId).

    Args:
        transaction: the id's state; a new one has no epoch.
        held: what the producer says it has and wants bumped (KIP-360); None if it has nothing.
        before: what the producer may have that was given the current id and epoch, and did not hear of it.
        timeout_ms: how long its transactions may stay open.
        now: ms since 1970.
        new_producer_id: gives a producer id that nobody has.

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
        return transaction.renewed(transaction.producer, timeout_ms, now)
    if transaction.exhausted:
        return transaction.renewed(ProducerIdAndEpoch(new_producer_id(), 0), timeout_ms, now)
    return transaction.renewed(
        ProducerIdAndEpoch(transaction.producer_id, transaction.producer_epoch + 1), timeout_ms, now
    )


def check_open(transaction: Transaction | None, producer: ProducerIdAndEpoch) -> Transaction:
    """The transaction, if this producer may write in it.

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


def decide_extension(
    transaction: Transaction | None,
    producer: ProducerIdAndEpoch,
    partitions: Iterable[TopicPartition],
    client_version: int,
    now: int,
) -> Transaction:
    """A producer writes to partitions; the first open a transaction.

    Returns:
        The next state; the very same if it has all the partitions.

    Raises:
        KafkaError: what `check_open` raises.
    """
    transaction = check_open(transaction, producer)
    if transaction.state is TransactionState.ONGOING and transaction.partitions.issuperset(partitions):
        return transaction
    return transaction.extended(partitions, client_version, now)


def decide_end(
    transaction: Transaction | None,
    producer: ProducerIdAndEpoch,
    *,
    commit: bool,
    client_version: int,
    now: int,
    new_producer_id: Callable[[], int],
) -> Transaction:
    """A producer commits or aborts (EndTxn).

    In transactions V2 the end takes the next epoch, or the next producer id if there is none. So the epoch before it
    tells that a request is sent again, and the current epoch that it is a new one: an abort that has nothing to abort.

    Returns:
        The next state; the very same if the request was carried out before.

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
    return transaction.decided(commit=commit, client_version=client_version, now=now, next_producer_id=next_id)
