"""What happens to batches: written, sent again, split, failed; and to their producer with them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from kohort.client.errors import ClientError, RequestTimeoutError, kafka_error
from kohort.client.producing.accumulator import Accumulator
from kohort.client.producing.batch import ProducerBatch
from kohort.client.producing.encoding import split_records
from kohort.client.producing.partition_queue import PartitionQueue
from kohort.client.producing.produce_request import PartitionAnswer
from kohort.client.producing.settings import ProducerSettings
from kohort.client.producing.transactions import ProducerState
from kohort.client.producing.verdicts import DOUBTFUL, Verdict, verdict_of
from kohort.protocol.errors import ErrorCode, KafkaError

__all__ = ["AnswerJudge"]

_SOON_MS: Final = 20.0
"""The transaction before is being finished; that takes no longer than writing its markers."""

_MOST_FAILED: Final = 1000
"""Failed batches that are kept until somebody looks at their errors, or asks for them all."""

_MAYBE: Final = " (they may be in the log)"

_ABORTED: Final = ClientError("the transaction that it was sent in was aborted")


class AnswerJudge:
    """Turns answers, lost connections and the passing of time into what becomes of batches. Times are ms.

    Args:
        accumulator, state, settings: the producer's.
        pause: how long to wait before a batch is sent again, by how often it was.

    """

    def __init__(
        self,
        accumulator: Accumulator,
        state: ProducerState,
        settings: ProducerSettings,
        pause: Callable[[int], float],
    ) -> None:
        self._accumulator = accumulator
        self._state = state
        self._settings = settings
        self._pause = pause
        self._transactional = settings.transactional_id is not None
        self._failed: list[ProducerBatch] = []
        self._lost: Counter[str] = Counter()  # what isn't in `_failed` any more
        self._first_loss: Exception | None = None

    def sent_unacknowledged(self, batch: ProducerBatch) -> None:
        """Nobody will say what became of it (acks=0)."""
        self._queue(batch).written(batch)
        self._written(batch, -1, -1)

    def answered(self, batch: ProducerBatch, answer: PartitionAnswer | None, now: float) -> Verdict:
        """A broker answered; returns what that means."""
        if answer is None:
            self.unanswered(batch, kafka_error(ErrorCode.UNKNOWN_SERVER_ERROR, "the answer leaves it out"), now)
            return Verdict.MOVED
        error = kafka_error(answer.error_code, answer.error_message or None)
        verdict = verdict_of(error.code)
        batch.trouble = error
        batch.doubtful |= error.code in DOUBTFUL
        queue = self._queue(batch)
        match verdict:
            case Verdict.WRITTEN:
                queue.written(batch)
                self._written(batch, answer.base_offset, answer.log_append_time_ms)
            case Verdict.RETRY | Verdict.MOVED:
                soon = error.code is ErrorCode.CONCURRENT_TRANSACTIONS
                self._again(batch, now, _SOON_MS if soon else self._pause(batch.attempts))
            case Verdict.SPLIT if batch.count > 1 and not batch.done and not self._state.failed:
                self._split(queue, batch)
            case Verdict.GAP | Verdict.FORGOTTEN if not (self._transactional and queue.is_first(batch)):
                self._again(batch, now, 0.0, gap=True)
            case _:
                queue.refused(batch)
                self._refused(batch, verdict, _explained(error, answer, batch))
        return verdict

    def unanswered(self, batch: ProducerBatch, error: Exception, now: float) -> None:
        """The connection broke, or nothing came in time: nobody knows whether it is in the log."""
        batch.trouble = error
        batch.doubtful = True
        self._again(batch, now, self._pause(batch.attempts))

    def unsendable(self, batch: ProducerBatch, error: Exception) -> None:
        """It couldn't even be encoded."""
        self._queue(batch).refused(batch)
        self._refused(batch, Verdict.REFUSED, error)

    def _queue(self, batch: ProducerBatch) -> PartitionQueue:
        return self._accumulator.queues[batch.target]

    def _again(self, batch: ProducerBatch, now: float, pause: float, *, gap: bool = False) -> None:
        queue = self._queue(batch)
        if self._state.failed and not batch.done:
            self._give_up(batch, self._state.error or _ABORTED)
        if not batch.done and now >= batch.created + self._settings.delivery_timeout_ms:
            self._time_out(batch)
        queue.again(batch, now + pause, gap=gap)
        self._accumulator.activate(queue)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        parts: list[ProducerBatch] = []
        for place, (data, count) in enumerate(split_records(batch, self._settings)):
            part = ProducerBatch(batch.target, (*batch.order, place), batch.created)
            part.encoded, part.count = data, count
            part.trouble, part.doubtful = batch.trouble, batch.doubtful
            part.size = len(data)
            start = sum(before.count for before in parts)
            part.timestamps = batch.timestamps[start : start + count]
            parts.append(part)
        self._accumulator.release(batch)
        self._accumulator.buffered += sum(part.size for part in parts)
        batch.split_into(parts)
        queue.replace(batch, parts)
        self._accumulator.activate(queue)

    def _refused(self, batch: ProducerBatch, verdict: Verdict, error: Exception) -> None:
        state = self._state
        if verdict is Verdict.FATAL or (verdict is Verdict.STALE and self._transactional):
            fenced = isinstance(error, KafkaError) and error.code in (
                ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED,
            )  # fmt: skip
            if fenced:
                state.fenced(error)
            else:
                state.fatal(error)
            self._give_up(batch, state.error or error)
            self.drop(state.error or error)
            return
        self._give_up(batch, error)

    def _written(self, batch: ProducerBatch, base_offset: int, append_time: int) -> None:
        self._accumulator.release(batch)
        batch.written(base_offset, append_time)

    def _give_up(self, batch: ProducerBatch, error: Exception) -> None:
        """Its records fail, and the transaction that they are in with them."""
        if batch.done:
            return
        self._failed.append(batch)
        if len(self._failed) > _MOST_FAILED:  # nobody asks
            self._count(self._failed[: _MOST_FAILED // 2])
            del self._failed[: _MOST_FAILED // 2]
        self._accumulator.release(batch)
        batch.fail(error)
        if self._transactional and batch.attempts:
            self._state.stale_epoch = True
        if self._transactional and not self._state.failed:
            self._state.abortable(error)
            if self._state.failed:
                self.drop(self._state.refusal or error)

    def _time_out(self, batch: ProducerBatch) -> None:
        ms = self._settings.delivery_timeout_ms
        detail = f"; the last error: {batch.trouble}" if batch.trouble else ""
        fate = _MAYBE if batch.attempts else ""
        self._give_up(
            batch, RequestTimeoutError(f"{batch.target}: not delivered within delivery_timeout_ms={ms}{fate}{detail}")
        )

    def expire(self, now: float, trouble: Callable[[ProducerBatch], Exception | None]) -> None:
        """Give up what is older than the delivery timeout; `trouble` says what keeps batches from being sent."""
        for batch in self._accumulator.expire(now):
            batch.trouble = batch.trouble or trouble(batch)
            self._time_out(batch)

    def drop(self, error: Exception) -> None:
        """Give up everything that isn't in flight."""
        for queue in self._accumulator.queues.values():
            for batch in queue.drop():
                self._give_up(batch, error)

    def drop_all(self, error: Exception) -> None:
        """Give up everything: nobody waits for answers any more."""
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
        """Whether a partition's batches may go; mends its sequences if that is what it takes (KIP-360)."""
        state = self._state
        if not state.may_write(queue.target):
            return False
        if queue.wants_new_epoch():
            if queue.identity == state.identity:
                if self._transactional:
                    return False  # the transaction has failed: its end brings a new epoch
                state.bump()
            if state.identity is None:
                return False
            for batch in queue.renew(state.identity):
                self._give_up(
                    batch,
                    ClientError(
                        f"{batch.target}: no answer came to it, and one before it wasn't delivered, so that sending it "
                        f"again might write it twice{_MAYBE}; the last error: {batch.trouble}"
                    ),
                )
        return True

    def take_losses(self) -> tuple[Counter[str], Exception | None]:
        """Records that failed since this was last asked, and whose errors nobody looked at, by topic; a first error."""
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


def _explained(error: KafkaError, answer: PartitionAnswer, batch: ProducerBatch) -> KafkaError:
    """The error, with what the broker says of single records, and what isn't known."""
    said = [error.detail] if error.detail else []
    said += [f"record {each.batch_index}: {each.batch_index_error_message}" for each in answer.record_errors[:3]]
    if batch.doubtful:
        said.append(f"not every attempt was answered{_MAYBE}")
    return KafkaError(error.code, "; ".join(said)) if said else error
