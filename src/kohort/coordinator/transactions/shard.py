"""The transactions of one partition of `__transaction_state`.

Every operation gives a step: the record that takes a transactional id to its next state, the answer, and, when a
transaction's outcome is settled by it, the markers to write. When these are written the coordinator hears of it
(`markers_written`) and closes the transaction. After a restart markers of transactions that were ending are asked for
again, so an outcome once in the log is carried out whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kohort.coordinator.step import Answer, Client, Reply, Step, first_batch
from kohort.coordinator.transactions.decisions import check_open, decide_end, decide_extension, decide_start
from kohort.coordinator.transactions.errors import PartitionErrors, add_partitions_results, fenced_for
from kohort.coordinator.transactions.listing import describe_transaction
from kohort.coordinator.transactions.settings import TransactionSettings
from kohort.coordinator.transactions.states import IDLE, PREPARED, TransactionState
from kohort.coordinator.transactions.step import Markers, TransactionStep
from kohort.coordinator.transactions.transaction import (
    NONE,
    TRANSACTIONS_V2,
    ProducerIdAndEpoch,
    Transaction,
    tombstone,
)
from kohort.protocol.errors import ErrorCode, KafkaError
from kohort.protocol.message import Data
from kohort.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kohort.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kohort.protocol.messages.describe_transactions import DescribeTransactionsResponse
from kohort.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from kohort.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.protocol.stored import OFFSETS_TOPIC
from kohort.protocol.stored.transaction_log import TransactionLogKey, TransactionLogValue
from kohort.protocol.topic_partition import TopicPartition

__all__ = ["TransactionShard", "give_producer_id"]

_Response = Callable[[ErrorCode], object]


class TransactionShard:
    """Coordinates the transactions of a partition's transactional ids.

    Args:
        partition: number of the partition of `__transaction_state`.
        settings: what the user set.
        new_producer_id: gives a producer id that nobody has; may raise `KafkaError`.
        coordinator_epoch: leader epoch of the partition.

    Attributes:
        pending_steps: what is to be done without anybody asking.
    """

    def __init__(
        self,
        partition: int,
        settings: TransactionSettings,
        new_producer_id: Callable[[], int],
        coordinator_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.pending_steps: list[Step] = []
        self._settings = settings
        self._new_producer_id = new_producer_id
        self._coordinator_epoch = coordinator_epoch
        self._transactions: dict[str, Transaction] = {}
        # Soft state: where markers lack, and what producers had before the id and epoch that they were given last.
        self._unmarked: dict[str, set[TopicPartition]] = {}
        self._given: dict[str, tuple[ProducerIdAndEpoch, ProducerIdAndEpoch]] = {}

    def get(self, transactional_id: str) -> Transaction | None:
        """The state of a transactional id."""
        return self._transactions.get(transactional_id)

    def transactions(self) -> Collection[Transaction]:
        """The states of all transactional ids."""
        return self._transactions.values()

    # Requests ---------------------------------------------------------------------------------------------------

    def init_producer_id(
        self, request: InitProducerIdRequest, client: Client, now: int, reply: Reply
    ) -> TransactionStep:
        """Give a producer its id and epoch, and fence who had the transactional id before."""

        def refused(code: ErrorCode) -> InitProducerIdResponse:
            return InitProducerIdResponse(error_code=fenced_for(code, client.version, 4), producer_epoch=NONE)

        try:
            held = self._check_start(request)
            if request.transactional_id is None:
                return _answer(reply, give_producer_id(self._new_producer_id))
            current = self._transactions.get(request.transactional_id)
            if current is None:
                current = Transaction(
                    request.transactional_id, self._new_producer_id(), NONE, request.transaction_timeout_ms
                )
            before = self._before(current)
            following = decide_start(current, held, before, request.transaction_timeout_ms, now, self._new_producer_id)
        except KafkaError as error:
            return _answer(reply, refused(error.code))
        if following.state is TransactionState.PREPARE_ABORT:
            return self._move(following, reply, refused(ErrorCode.CONCURRENT_TRANSACTIONS), refused)
        self._given.pop(request.transactional_id, None)
        if held is not None:
            self._given[request.transactional_id] = held, following.producer
        given = InitProducerIdResponse(producer_id=following.producer_id, producer_epoch=following.producer_epoch)
        return self._move(following, reply, given, refused)

    def add_partitions(
        self, request: AddPartitionsToTxnRequest.Transaction, client: Client, now: int, reply: Reply
    ) -> TransactionStep:
        """Have partitions take part in a transaction, or verify that they do.

        The reply gets an `AddPartitionsToTxnResponse.ResultsByTransaction`. Versions before 4, which clients send, have
        one transaction, without a struct of its own.
        """
        partitions = [TopicPartition(topic.name, index) for topic in request.topics for index in topic.partitions]

        def results(errors: PartitionErrors) -> None:
            reply(
                add_partitions_results(request, {p: fenced_for(code, client.version, 2) for p, code in errors.items()})
            )

        return self.verify_or_add(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            partitions,
            add=not request.verify_only,
            client_version=TRANSACTIONS_V2 if client.version >= 4 else 0,
            now=now,
            reply=results,
        )

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, offsets_partition: int, client: Client, now: int, reply: Reply
    ) -> TransactionStep:
        """Have the group's partition of `__consumer_offsets` take part in a transaction."""

        def result(errors: PartitionErrors) -> None:
            (code,) = errors.values()
            reply(AddOffsetsToTxnResponse(error_code=fenced_for(code, client.version, 2)))

        return self.verify_or_add(
            request.transactional_id,
            ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
            [TopicPartition(OFFSETS_TOPIC, offsets_partition)],
            add=True,
            client_version=0,
            now=now,
            reply=result,
        )

    def verify_or_add(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
        client_version: int = TRANSACTIONS_V2,
        now: int,
        reply: Callable[[PartitionErrors], None],
    ) -> TransactionStep:
        """What is due before a producer's batch, or its offsets, go into a partition (KIP-890).

        Args:
            transactional_id: whose transaction it is.
            producer: what the batch says of its producer.
            partitions: where it goes.
            add: have the partitions take part, as transactions V2 do (Produce from v12, TxnOffsetCommit from v5 on);
                else only verify that they do: TRANSACTION_ABORTABLE for those that don't.
            client_version: version of the transactions that the producer makes, if `add`.
            now: ms since 1970.
            reply: gets the error of each partition.
        """

        def every(code: ErrorCode) -> PartitionErrors:
            return dict.fromkeys(partitions, code)

        try:
            if not transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            current = self._transactions.get(transactional_id)
            if not add:
                taking_part = check_open(current, producer).partitions
                errors = {
                    partition: ErrorCode.NONE if partition in taking_part else ErrorCode.TRANSACTION_ABORTABLE
                    for partition in partitions
                }
                return _answer(reply, errors)
            following = decide_extension(current, producer, partitions, client_version, now)
        except KafkaError as error:
            return _answer(reply, every(error.code))
        if following is current:
            return _answer(reply, every(ErrorCode.NONE))
        return self._move(following, reply, every(ErrorCode.NONE), every)

    def end_txn(self, request: EndTxnRequest, client: Client, now: int, reply: Reply) -> TransactionStep:
        """Commit or abort a transaction. The answer tells that the outcome is settled, not that markers are written."""

        def refused(code: ErrorCode) -> EndTxnResponse:
            return EndTxnResponse(error_code=fenced_for(code, client.version, 2))

        try:
            if not request.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            current = self._transactions.get(request.transactional_id)
            following = decide_end(
                current,
                ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
                commit=request.committed,
                client_version=TRANSACTIONS_V2 if client.version >= 5 else 0,
                now=now,
                new_producer_id=self._new_producer_id,
            )
        except KafkaError as error:
            return _answer(reply, refused(error.code))
        producer = following.producer_after
        done = EndTxnResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)
        return _answer(reply, done) if following is current else self._move(following, reply, done, refused)

    def describe(self, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
        """A transactional id for DescribeTransactions: TRANSACTIONAL_ID_NOT_FOUND if it is unknown."""
        transaction = self._transactions.get(transactional_id)
        partitions: Iterable[TopicPartition] = () if transaction is None else transaction.partitions
        return describe_transaction(transactional_id, transaction, self._unmarked.get(transactional_id, partitions))

    # What happens without a request ------------------------------------------------------------------------------

    def unmarked(self, markers: Markers) -> tuple[TopicPartition, ...]:
        """Where these markers are still due, sorted. To be asked right before they are written.

        Markers may be asked for twice, and the second ones must not end the transaction that follows.
        """
        transaction = self._transactions.get(markers.transactional_id)
        if (
            transaction is None
            or transaction.state not in PREPARED
            or transaction.producer != (markers.producer_id, markers.producer_epoch)
            or markers.commit is not (transaction.state is TransactionState.PREPARE_COMMIT)
        ):
            return ()
        return tuple(sorted(self._unmarked[markers.transactional_id].intersection(markers.partitions)))

    def markers_written(self, transactional_id: str, written: Iterable[TopicPartition], now: int) -> TransactionStep:
        """Note where markers were written, or the partition is gone; with the last of them the transaction ends."""
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.state not in PREPARED:
            return TransactionStep()
        unmarked = self._unmarked[transactional_id]
        unmarked.difference_update(written)
        return TransactionStep() if unmarked else TransactionStep([transaction.completed(now).record()])

    def check_timeouts(self, now: int) -> TransactionStep:
        """Abort transactions that take too long, and ask again for markers that lack for long.

        What doesn't fit in a batch is left for the next time.
        """
        slow: list[Transaction] = []
        markers: list[Markers] = []
        patience = self._settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        for transaction in self._transactions.values():
            if transaction.state is TransactionState.ONGOING:
                if transaction.started_at + transaction.timeout_ms < now:
                    slow.append(transaction.fenced(now))
            elif transaction.state in PREPARED and transaction.updated_at + patience <= now:
                unmarked = self._unmarked[transaction.transactional_id]
                markers.append(self._markers(transaction, unmarked))
        records = first_batch(aborted.record() for aborted in slow)
        markers += [self._markers(aborted, aborted.partitions) for aborted in slow[: len(records)]]
        return TransactionStep(records, markers=markers)

    def expire(self, now: int) -> TransactionStep:
        """Forget transactional ids that weren't used for long; what doesn't fit in a batch is left for next time."""
        before = now - self._settings.transactional_id_expiration_ms
        return TransactionStep(
            first_batch(
                tombstone(transaction.transactional_id)
                for transaction in self._transactions.values()
                if transaction.state in IDLE and transaction.updated_at <= before
            )
        )

    # Replay -----------------------------------------------------------------------------------------------------

    def replay(self, key: Data, value: Data | None, producer: tuple[int, int] | None = None) -> None:
        """Apply a record of the log; it never belongs to a transaction itself."""
        assert isinstance(key, TransactionLogKey)
        transactional_id = key.transactional_id
        self._unmarked.pop(transactional_id, None)
        assert value is None or isinstance(value, TransactionLogValue)
        transaction = None if value is None else Transaction.read(key, value)
        if transaction is None or transaction.state is TransactionState.DEAD:
            self._transactions.pop(transactional_id, None)
            self._given.pop(transactional_id, None)
            return
        self._transactions[transactional_id] = transaction
        if transaction.state in PREPARED:
            self._unmarked[transactional_id] = set(transaction.partitions)

    def loaded(self, now: int) -> None:
        """Go on with what the log leaves unfinished: `pending_steps` gets the markers of ending transactions."""
        step = TransactionStep()
        for transaction in self._transactions.values():
            if transaction.state in PREPARED:
                step.markers.append(self._markers(transaction, transaction.partitions))
            elif transaction.state is TransactionState.PREPARE_EPOCH_FENCE:
                aborted = transaction.decided(commit=False, client_version=0, now=now)
                step.records.append(aborted.record())
                step.markers.append(self._markers(aborted, aborted.partitions))
        if step.markers:
            self.pending_steps.append(step)

    # ------------------------------------------------------------------------------------------------------------

    def _check_start(self, request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
        """What the request says that the producer has.

        Raises:
            KafkaError: the request makes no sense, or asks for what this coordinator doesn't do.
        """
        if (request.producer_id == NONE) is not (request.producer_epoch == NONE):
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is None:
            return None
        if not request.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if request.enable2_pc:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)  # as Kafka where KIP-939 is switched off
        if request.keep_prepared_txn:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        if not 0 < request.transaction_timeout_ms <= self._settings.transaction_max_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return None if request.producer_id == NONE else ProducerIdAndEpoch(request.producer_id, request.producer_epoch)

    def _before(self, transaction: Transaction) -> ProducerIdAndEpoch | None:
        """What a producer has that was given the current id and epoch, and did not hear of it."""
        had, given = self._given.get(transaction.transactional_id, (None, None))
        if transaction.state in IDLE and transaction.producer == given:
            return had
        return transaction.before_bump

    def _move(self, following: Transaction, reply: Reply, response: object, refused: _Response) -> TransactionStep:
        """The step that takes a transactional id to its next state."""
        return TransactionStep(
            [following.record()],
            [Answer(reply, response)],
            lambda code: _answer(reply, refused(code)),
            markers=[self._markers(following, following.partitions)] if following.state in PREPARED else [],
        )

    def _markers(self, transaction: Transaction, partitions: Iterable[TopicPartition]) -> Markers:
        return Markers(
            transaction.transactional_id,
            transaction.producer_id,
            transaction.producer_epoch,
            transaction.state is TransactionState.PREPARE_COMMIT,
            self._coordinator_epoch,
            transaction.client_version,
            tuple(sorted(partitions)),
        )


def give_producer_id(new_producer_id: Callable[[], int]) -> InitProducerIdResponse:
    """The response for a producer that is idempotent, but has no transactions; any broker gives it."""
    try:
        return InitProducerIdResponse(producer_id=new_producer_id(), producer_epoch=0)
    except KafkaError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=NONE)


def _answer(reply: Reply, response: object) -> TransactionStep:
    return TransactionStep(answers=[Answer(reply, response)])
