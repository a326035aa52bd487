"""The transactions of one partition of `__transaction_state`.

Every operation returns a step: the record with the next state of a transactional id, the answer, and, if it decides a
transaction's outcome, the markers to write. When these are written, `markers_written` completes the transaction. After
a restart the markers of transactions that were ending are asked for again, so an outcome that is in the log is always
carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from kohort.coordinator.step import Answer, Client, Reply, Step, first_batch
from kohort.coordinator.transactions.errors import PartitionErrors, add_partitions_results, fencing_error
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
from kohort.coordinator.transactions.transitions import (
    check_producer,
    prepare_add_partitions,
    prepare_end_txn,
    prepare_init_producer_id,
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

_Response = Callable[[ErrorCode], object]


class TransactionShard:
    """Coordinates the transactions of a partition's transactional ids.

    Args:
        partition: number of the partition of `__transaction_state`.
        new_producer_id: gives an unused producer id; may raise `KafkaError`.
        coordinator_epoch: leader epoch of the partition.

    Attributes:
        pending_steps: steps that no request causes.
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
        # In memory only: partitions without their marker yet, and for producers that had their epoch bumped (KIP-360)
        # the id and epoch before and after that.
        self._pending_markers: dict[str, set[TopicPartition]] = {}
        self._bumped: dict[str, tuple[ProducerIdAndEpoch, ProducerIdAndEpoch]] = {}

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    def transactions(self) -> Collection[Transaction]:
        return self._transactions.values()

    # Requests ---------------------------------------------------------------------------------------------------

    def init_producer_id(
        self, request: InitProducerIdRequest, client: Client, now: int, reply: Reply
    ) -> TransactionStep:
        """InitProducerId: gives a producer its id and epoch, and fences earlier producers of the transactional id."""

        def refused(code: ErrorCode) -> InitProducerIdResponse:
            return InitProducerIdResponse(error_code=fencing_error(code, client.version, 4), producer_epoch=NONE)

        try:
            held = self._check_init(request)
            if request.transactional_id is None:
                return _answer(reply, init_idempotent_producer(self._new_producer_id))
            current = self._transactions.get(request.transactional_id)
            if current is None:
                current = Transaction(
                    request.transactional_id, self._new_producer_id(), NONE, request.transaction_timeout_ms
                )
            before = self._before(current)
            following = prepare_init_producer_id(
                current, held, before, request.transaction_timeout_ms, now, self._new_producer_id
            )
        except KafkaError as error:
            return _answer(reply, refused(error.code))
        if following.state is TransactionState.PREPARE_ABORT:
            return self._transition_step(following, reply, refused(ErrorCode.CONCURRENT_TRANSACTIONS), refused)
        self._bumped.pop(request.transactional_id, None)
        if held is not None:
            self._bumped[request.transactional_id] = held, following.producer
        given = InitProducerIdResponse(producer_id=following.producer_id, producer_epoch=following.producer_epoch)
        return self._transition_step(following, reply, given, refused)

    def add_partitions(
        self, request: AddPartitionsToTxnRequest.Transaction, client: Client, now: int, reply: Reply
    ) -> TransactionStep:
        """AddPartitionsToTxn: adds partitions to a transaction, or verifies that they were added.

        The reply gets an `AddPartitionsToTxnResponse.ResultsByTransaction`. Versions before 4, which clients send, have
        one transaction, without a struct of its own.
        """
        partitions = [TopicPartition(topic.name, index) for topic in request.topics for index in topic.partitions]

        def results(errors: PartitionErrors) -> None:
            reply(
                add_partitions_results(
                    request, {p: fencing_error(code, client.version, 2) for p, code in errors.items()}
                )
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
        """AddOffsetsToTxn: adds the group's partition of `__consumer_offsets` to a transaction."""

        def result(errors: PartitionErrors) -> None:
            (code,) = errors.values()
            reply(AddOffsetsToTxnResponse(error_code=fencing_error(code, client.version, 2)))

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
        """Checks a transaction before a producer's batch, or its offsets, go into a partition (KIP-890).

        Args:
            add: add the partitions, as transactions V2 do (Produce from v12, TxnOffsetCommit from v5 on); else only
                verify that they were added: TRANSACTION_ABORTABLE for those that weren't.
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
                added = check_producer(current, producer).partitions
                errors = {
                    partition: ErrorCode.NONE if partition in added else ErrorCode.TRANSACTION_ABORTABLE
                    for partition in partitions
                }
                return _answer(reply, errors)
            following = prepare_add_partitions(current, producer, partitions, client_version, now)
        except KafkaError as error:
            return _answer(reply, every(error.code))
        if following is current:
            return _answer(reply, every(ErrorCode.NONE))
        return self._transition_step(following, reply, every(ErrorCode.NONE), every)

    def end_txn(self, request: EndTxnRequest, client: Client, now: int, reply: Reply) -> TransactionStep:
        """EndTxn: commits or aborts. The answer says that the outcome is decided, not that markers are written."""

        def refused(code: ErrorCode) -> EndTxnResponse:
            return EndTxnResponse(error_code=fencing_error(code, client.version, 2))

        try:
            if not request.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            current = self._transactions.get(request.transactional_id)
            following = prepare_end_txn(
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
        return _answer(reply, done) if following is current else self._transition_step(following, reply, done, refused)

    def describe(self, transactional_id: str) -> DescribeTransactionsResponse.TransactionState:
        """A transactional id for DescribeTransactions: TRANSACTIONAL_ID_NOT_FOUND if it is unknown."""
        transaction = self._transactions.get(transactional_id)
        partitions: Iterable[TopicPartition] = () if transaction is None else transaction.partitions
        return describe_transaction(
            transactional_id, transaction, self._pending_markers.get(transactional_id, partitions)
        )

    # Markers, timeouts and expiration ----------------------------------------------------------------------------

    def pending_markers(self, markers: Markers) -> tuple[TopicPartition, ...]:
        """The partitions where these markers are still due, sorted. To be called right before they are written.

        Markers may be asked for twice, and the second ones must not end the next transaction.
        """
        transaction = self._transactions.get(markers.transactional_id)
        if (
            transaction is None
            or transaction.state not in PREPARED
            or transaction.producer != (markers.producer_id, markers.producer_epoch)
            or markers.commit is not (transaction.state is TransactionState.PREPARE_COMMIT)
        ):
            return ()
        return tuple(sorted(self._pending_markers[markers.transactional_id].intersection(markers.partitions)))

    def markers_written(self, transactional_id: str, written: Iterable[TopicPartition], now: int) -> TransactionStep:
        """Notes partitions where markers were written, or that are gone; after the last one the transaction is over."""
        transaction = self._transactions.get(transactional_id)
        if transaction is None or transaction.state not in PREPARED:
            return TransactionStep()
        pending = self._pending_markers[transactional_id]
        pending.difference_update(written)
        return TransactionStep() if pending else TransactionStep([transaction.completed(now).record()])

    def abort_timed_out(self, now: int) -> TransactionStep:
        """Aborts transactions that are past `transaction.timeout.ms`, and asks again for markers that are still due.

        What doesn't fit in a batch is left for the next call.
        """
        timed_out: list[Transaction] = []
        markers: list[Markers] = []
        retry_ms = self._settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        for transaction in self._transactions.values():
            if transaction.state is TransactionState.ONGOING:
                if transaction.started_at + transaction.timeout_ms < now:
                    timed_out.append(transaction.fenced(now))
            elif transaction.state in PREPARED and transaction.updated_at + retry_ms <= now:
                markers.append(self._markers(transaction, self._pending_markers[transaction.transactional_id]))
        records = first_batch(aborted.record() for aborted in timed_out)
        markers += [self._markers(aborted, aborted.partitions) for aborted in timed_out[: len(records)]]
        return TransactionStep(records, markers=markers)

    def expire(self, now: int) -> TransactionStep:
        """Removes expired transactional ids; what doesn't fit in a batch is left for the next call."""
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
        """Applies a record of the log; it never belongs to a transaction itself."""
        assert isinstance(key, TransactionLogKey)
        transactional_id = key.transactional_id
        self._pending_markers.pop(transactional_id, None)
        assert value is None or isinstance(value, TransactionLogValue)
        transaction = None if value is None else Transaction.read(key, value)
        if transaction is None or transaction.state is TransactionState.DEAD:
            self._transactions.pop(transactional_id, None)
            self._bumped.pop(transactional_id, None)
            return
        self._transactions[transactional_id] = transaction
        if transaction.state in PREPARED:
            self._pending_markers[transactional_id] = set(transaction.partitions)

    def loaded(self, now: int) -> None:
        """Resumes after a replay: `pending_steps` gets the markers of transactions that were ending."""
        step = TransactionStep()
        for transaction in self._transactions.values():
            if transaction.state in PREPARED:
                step.markers.append(self._markers(transaction, transaction.partitions))
            elif transaction.state is TransactionState.PREPARE_EPOCH_FENCE:
                aborted = transaction.prepared(commit=False, client_version=0, now=now)
                step.records.append(aborted.record())
                step.markers.append(self._markers(aborted, aborted.partitions))
        if step.markers:
            self.pending_steps.append(step)

    # ------------------------------------------------------------------------------------------------------------

    def _check_init(self, request: InitProducerIdRequest) -> ProducerIdAndEpoch | None:
        """Id and epoch that the producer has, by its request.

        Raises:
            KafkaError: the request makes no sense, or asks for something unsupported.
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
        """Id and epoch that a producer still has if it didn't get the answer with the current ones."""
        had, given = self._bumped.get(transaction.transactional_id, (None, None))
        if transaction.state in IDLE and transaction.producer == given:
            return had
        return transaction.before_bump

    def _transition_step(
        self, following: Transaction, reply: Reply, response: object, refused: _Response
    ) -> TransactionStep:
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


def init_idempotent_producer(new_producer_id: Callable[[], int]) -> InitProducerIdResponse:
    """InitProducerId of a producer without transactions; any broker may answer it."""
    try:
        return InitProducerIdResponse(producer_id=new_producer_id(), producer_epoch=0)
    except KafkaError as error:
        return InitProducerIdResponse(error_code=error.code, producer_epoch=NONE)


def _answer(reply: Reply, response: object) -> TransactionStep:
    return TransactionStep(answers=[Answer(reply, response)])
