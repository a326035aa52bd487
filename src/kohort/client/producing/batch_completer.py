"""Completes batches after responses, lost connections and timeouts: written, sent again, split, failed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from kohort.client.errors import ClientError, RequestTimeoutError, kafka_error
from kohort.client.producing.accumulator import Accumulator
from kohort.client.producing.batch import ProducerBatch
from kohort.client.producing.encoding import split_records
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.produce_errors import DOUBTFUL, Verdict, verdict_of
from kohort.client.producing.produce_request import PartitionResponse
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transaction_manager import TransactionManager
from kohort.protocol.errors import ErrorCode, KafkaError

_CONCURRENT_TRANSACTIONS_PAUSE_MS: Final = 20.0
"""The previous transaction is being finished; that takes no longer than writing its markers."""

_MOST_FAILED: Final = 1000
"""Failed batches that are kept until the user looks at their errors, or `flush` raises them."""

_MAYBE: Final = " (they may be in the log)"

_ABORTED: Final = ClientError("the transaction that it was sent in was aborted")


class BatchCompleter:
    """Completes batches. Times are ms.

    Args:
        pause: returns how long to wait before a batch is sent again, by its number of attempts.
    """

    def __init__(
        self,
        accumulator: Accumulator,
        manager: TransactionManager,
        settings: ProducerSettings,
        pause: Callable[[int], float],
    ) -> None:
        self._accumulator = accumulator
        self._manager = manager
        self._settings = settings
        self._pause = pause
        self._transactional = settings.transactional_id is not None
        self._failed: list[ProducerBatch] = []
        self._lost: Counter[str] = Counter()  # of batches no longer in `_failed`
        self._first_loss: Exception | None = None

    def sent_unacknowledged(self, batch: ProducerBatch) -> None:
        """No response will come (acks=0)."""
        self._queue(batch).written(batch)
        self._written(batch, -1, -1)

    def handle_response(self, batch: ProducerBatch, answer: PartitionResponse | None, now: float) -> Verdict:
        """Completes a batch by its part of a response, or queues it again."""
        if answer is None:
            self.handle_no_response(batch, kafka_error(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer leaves it out"), now)
            return Verdict.LEADER_MOVED
        error = kafka_error(answer.error_code, answer.error_message or None)
        verdict = verdict_of(error.code)
        batch.last_error = error
        batch.doubtful |= error.code in DOUBTFUL
        queue = self._queue(batch)
        match verdict:
            case Verdict.WRITTEN:
                queue.written(batch)
                self._written(batch, answer.base_offset, answer.log_append_time_ms)
            case Verdict.RETRY | Verdict.LEADER_MOVED:
                soon = error.code is ErrorCode.CONCURRENT_TRANSACTIONS
                self._requeue(batch, now, _CONCURRENT_TRANSACTIONS_PAUSE_MS if soon else self._pause(batch.attempts))
            case Verdict.SPLIT if batch.count > 1 and not batch.done and not self._manager.failed:
                self._split(queue, batch)
            case Verdict.OUT_OF_ORDER | Verdict.UNKNOWN_PRODUCER if not (self._transactional and queue.is_first(batch)):
                self._requeue(batch, now, 0.0, gap=True)
            case _:
                queue.refused(batch)
                self._reject(batch, verdict, _detailed(error, answer, batch))
        return verdict

    def handle_no_response(self, batch: ProducerBatch, error: Exception, now: float) -> None:
        """The connection broke, or no response came in time: the batch may be in the log."""
        batch.last_error = error
        batch.doubtful = True
        self._requeue(batch, now, self._pause(batch.attempts))

    def unsendable(self, batch: ProducerBatch, error: Exception) -> None:
        """The batch can't be encoded."""
        self._queue(batch).refused(batch)
        self._reject(batch, Verdict.REFUSED, error)

    def _queue(self, batch: ProducerBatch) -> PartitionQueue:
        return self._accumulator.queues[batch.target]

    def _requeue(self, batch: ProducerBatch, now: float, pause: float, *, gap: bool = False) -> None:
        queue = self._queue(batch)
        if self._manager.failed and not batch.done:
            self._give_up(batch, self._manager.error or _ABORTED)
        if not batch.done and now >= batch.created + self._settings.delivery_timeout_ms:
            self._time_out(batch)
        queue.send_again(batch, now + pause, gap=gap)
        self._accumulator.activate(queue)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        parts: list[ProducerBatch] = []
        for place, (data, count) in enumerate(split_records(batch, self._settings)):
            part = ProducerBatch(batch.target, (*batch.order, place), batch.created)
            part.encoded, part.count = data, count
            part.last_error, part.doubtful = batch.last_error, batch.doubtful
            part.size = len(data)
            start = sum(before.count for before in parts)
            part.timestamps = batch.timestamps[start : start + count]
            parts.append(part)
        self._accumulator.release(batch)
        self._accumulator.buffered += sum(part.size for part in parts)
        batch.split_into(parts)
        queue.replace(batch, parts)
        self._accumulator.activate(queue)

    def _reject(self, batch: ProducerBatch, verdict: Verdict, error: Exception) -> None:
        manager = self._manager
        if verdict is Verdict.FATAL or (verdict is Verdict.STALE_EPOCH and self._transactional):
            fenced = isinstance(error, KafkaError) and error.code in (
                ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED,
            )  # fmt: skip
            if fenced:
                manager.fenced(error)
            else:
                manager.fatal(error)
            self._give_up(batch, manager.error or error)
            self.drop(manager.error or error)
            return
        self._give_up(batch, error)

    def _written(self, batch: ProducerBatch, base_offset: int, append_time: int) -> None:
        self._accumulator.release(batch)
        batch.written(base_offset, append_time)

    def _give_up(self, batch: ProducerBatch, error: Exception) -> None:
        if batch.done:
            return
        self._failed.append(batch)
        if len(self._failed) > _MOST_FAILED:  # the user doesn't ask
            self._count(self._failed[: _MOST_FAILED // 2])
            del self._failed[: _MOST_FAILED // 2]
        self._accumulator.release(batch)
        batch.fail(error)
        if self._transactional and batch.attempts:
            self._manager.epoch_bump_needed = True
        if self._transactional and not self._manager.failed:
            self._manager.abortable(error)
            if self._manager.failed:
                self.drop(self._manager.send_error or error)

    def _time_out(self, batch: ProducerBatch) -> None:
        ms = self._settings.delivery_timeout_ms
        detail = f"; the last error: {batch.last_error}" if batch.last_error else ""
        fate = _MAYBE if batch.attempts else ""
        self._give_up(
            batch, RequestTimeoutError(f"{batch.target}: not delivered within delivery_timeout_ms={ms}{fate}{detail}")
        )

    def expire(self, now: float, reason: Callable[[ProducerBatch], Exception | None]) -> None:
        """Gives up batches older than the delivery timeout; `reason` says what keeps a batch from being sent."""
        for batch in self._accumulator.expire(now):
            batch.last_error = batch.last_error or reason(batch)
            self._time_out(batch)

    def drop(self, error: Exception) -> None:
        """Give up everything that isn't in flight."""
        for queue in self._accumulator.queues.values():
            for batch in queue.drop():
                self._give_up(batch, error)

    def drop_all(self, error: Exception) -> None:
        """Gives up everything, in flight or not."""
        self.drop(error)
        for queue in self._accumulator.queues.values():
            for batch in queue.in_flight:
                self._give_up(batch, error)

    def drop_from(self, node: int, error: Exception) -> None:
        """Give up everything for one broker that isn't in flight."""
        for queue in self._accumulator.queues.values():
            if queue.node == node:
                for batch in queue.drop():
                    self._give_up(batch, error)

    def may_send(self, queue: PartitionQueue) -> bool:
        """Whether a partition's batches may be sent; raises the epoch first, if sequences are broken (KIP-360)."""
        manager = self._manager
        if not manager.may_write(queue.target):
            return False
        if queue.wants_new_epoch():
            if queue.identity == manager.identity:
                if self._transactional:
                    return False  # the transaction has failed: its end raises the epoch
                manager.bump_epoch()
            if manager.identity is None:
                return False
            for batch in queue.begin_epoch(manager.identity):
                self._give_up(
                    batch,
                    ClientError(
                        f"{batch.target}: no answer came to it, and one before it wasn't delivered, so that sending it "
                        f"again might write it twice{_MAYBE}; the last error: {batch.last_error}"
                    ),
                )
        return True

    def take_losses(self) -> tuple[Counter[str], Exception | None]:
        """Returns the records that failed since the last call, with errors nobody looked at, by topic; and an error."""
        self._count(self._failed)
        self._failed = []
        lost, self._lost = self._lost, Counter()
        first, self._first_loss = self._first_loss, None
        return lost, first

    def _count(self, failed: Iterable[ProducerBatch]) -> None:
        for batch in failed:
            if unseen := batch.count - len(batch.seen):
                self._lost[batch.target.topic] += unseen
                self._first_loss = self._first_loss or batch.error


def _detailed(error: KafkaError, answer: PartitionResponse, batch: ProducerBatch) -> KafkaError:
    """Returns the error with the broker's messages for records, and whether the batch may be in the log."""
    details = [error.detail] if error.detail else []
    details += [f"record {each.batch_index}: {each.batch_index_error_message}" for each in answer.record_errors[:3]]
    if batch.doubtful:
        details.append(f"not every attempt was answered{_MAYBE}")
    return KafkaError(error.code, "; ".join(details)) if details else error
