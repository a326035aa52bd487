"""The batches of one partition: which is sent next, and the order and sequences after errors.

    open -> waiting -> in flight -> written
                          |  ^
                          v  |
                        retries            refused, expired: failed

Rules, from which order and exactly-once follow:

1. A batch gets its sequence when it is first sent, and the records under a sequence never change, except by rule 7.
   After a lost connection the batch may be in the log or not; it is sent again with the same sequence, and the broker,
   which knows the last five batches, tells.
2. After an error nothing of the partition is sent until all that is in flight has responses; then what failed is sent
   again, in order, before anything new.
3. No more than `most_in_flight` batches are sent and not completed.
4. A producer id's first batch is sent alone until it is written, also after a while without any: a broker lets a
   producer that it doesn't know (any more) begin with any sequence, so it would take the second batch where it refused
   the first.
5. A batch that is given up, and can't be in the log, breaks the sequence: the following ones can't be there either.
6. One that is given up and may be in the log (`doubtful`) breaks nothing yet: batches sent after it are sent again as
   they are. If they are written, so was the other; if the broker reports a gap, that breaks the sequence. But then
   doubtful batches are given up, too: the broker may still read them from a connection that is lost.
7. Broken sequences are renewed when all batches before the break are done: the producer's epoch is bumped, and the
   following batches begin at sequence 0 (KIP-360). So a batch that may be in the log under its old sequence is never
   sent under a new one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Final

from kohort.client.producing.batch import Identity, Order, ProducerBatch
from kohort.client.types import TopicPartition
from kohort.protocol.records.batch import next_sequence

_PRODUCER_IDLE_MS: Final = 60_000.0
"""After it, rule 4 holds again; brokers forget producers after `producer.id.expiration.ms` (a day)."""


class PartitionQueue:
    """One partition's batches. Pure: times are given, in ms.

    Args:
        idempotent: whether batches have sequences.
        most_in_flight: how many batches may be sent and unanswered.

    Attributes:
        open: the batch that takes records, if there is one.
        waiting: batches that were never sent.
        retries: batches to send again.
        in_flight: batches without a response yet.
        node: id of the leader; None while there is none.
        retry_at: ms; nothing is sent before.
    """

    __slots__ = (
        "_break_is_certain",
        "_broken_from",
        "_doubtful_until",
        "_idempotent",
        "_identity",
        "_known_producer_id",
        "_most",
        "_next",
        "_recovering",
        "_sent_at",
        "in_flight",
        "node",
        "open",
        "retries",
        "retry_at",
        "target",
        "waiting",
    )  # fmt: skip

    def __init__(self, target: TopicPartition, *, idempotent: bool, most_in_flight: int) -> None:
        self.target = target
        self._idempotent = idempotent
        self._most = most_in_flight
        self.open: ProducerBatch | None = None
        self.waiting: deque[ProducerBatch] = deque()
        self.retries: list[ProducerBatch] = []
        self.in_flight: list[ProducerBatch] = []
        self.node: int | None = None
        self.retry_at = 0.0
        self._identity: Identity | None = None
        self._next = 0
        self._known_producer_id: int | None = None  # the producer id that the leader has seen
        self._sent_at = 0.0
        self._recovering = False
        self._doubtful_until: Order | None = None
        self._broken_from: Order | None = None
        self._break_is_certain = True  # that what follows the break isn't in the log

    @property
    def identity(self) -> Identity | None:
        """The id and epoch that its sequences belong to."""
        return self._identity

    @property
    def idle(self) -> bool:
        """Whether there is nothing to send or to wait for."""
        return not self.has_more and not self.in_flight

    @property
    def has_more(self) -> bool:
        """Whether there is anything to send, now or later."""
        return self.open is not None or bool(self.waiting) or bool(self.retries)

    def batches(self) -> Iterator[ProducerBatch]:
        """All batches that aren't done, in order."""
        yield from chain(sorted(chain(self.in_flight, self.retries), key=_order), self.waiting)
        if self.open is not None:
            yield self.open

    def seal(self) -> None:
        """The open batch takes no more."""
        if self.open is not None:
            self.waiting.append(self.open)
            self.open = None

    def wants_new_epoch(self) -> bool:
        """Whether rule 7 needs a new epoch before anything more can be sent."""
        if self.in_flight or not self._idempotent:
            return False
        if self._broken_from is None:
            # The last batch was given up: nothing will tell whether it is in the log, and which sequence is next.
            return self._doubtful_until is not None and not self.retries
        return not self.retries or self.retries[0].order >= self._broken_from

    def begin_epoch(self, identity: Identity) -> list[ProducerBatch]:
        """Begins at sequence 0 under a new epoch or id, with the batches to send again.

        Batches that might be written twice are given up and returned (rule 6).
        """
        risky = [] if self._break_is_certain else [batch for batch in self.retries if batch.doubtful]
        self.retries = [batch for batch in self.retries if batch not in risky]
        self._begin(identity)
        for batch in self.retries:
            self._number(batch)
        return risky

    def take(self, now: float, identity: Identity | None) -> ProducerBatch | None:
        """Returns the next batch to send, in flight from now on; None if there is none, or it must wait."""
        if self.blocked(now) or self.wants_new_epoch():
            return None
        self._recovering = False
        if self.retries:
            if self._broken_from is not None and self.retries[0].order >= self._broken_from:
                return None
            batch = self.retries.pop(0)
        elif self._broken_from is not None or not self.waiting:
            return None
        else:
            if self._idempotent:
                if identity is None:
                    return None
                if identity != self._identity and not self.in_flight:
                    self._begin(identity)
                self._number(self.waiting[0])
            batch = self.waiting.popleft()
        if not self.in_flight and now - self._sent_at > _PRODUCER_IDLE_MS:
            self._known_producer_id = None
        self._sent_at = now
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def blocked(self, now: float) -> bool:
        """Whether nothing may be sent before a response comes, or before `retry_at`."""
        if now < self.retry_at:
            return True
        alone = self._recovering or (self._idempotent and not self._leader_knows_producer())
        return len(self.in_flight) >= (1 if alone else self._most)

    def _leader_knows_producer(self) -> bool:
        return self._identity is not None and self._identity.producer_id == self._known_producer_id

    def _begin(self, identity: Identity) -> None:
        self._identity = identity
        self._next = 0
        self._doubtful_until = None
        self._broken_from = None
        self._break_is_certain = True

    def _number(self, batch: ProducerBatch) -> None:
        batch.identity, batch.sequence = self._identity, self._next
        self._next = next_sequence(self._next, batch.count)

    def written(self, batch: ProducerBatch) -> None:
        """The batch is in the log, and so are all before it."""
        self.in_flight.remove(batch)
        if batch.identity is not None:
            self._known_producer_id = batch.identity.producer_id
        if self._doubtful_until is not None and batch.order > self._doubtful_until:
            self._doubtful_until = None

    def send_again(self, batch: ProducerBatch, retry_at: float, *, gap: bool = False) -> None:
        """Queues a batch to be sent again at `retry_at`; `gap`: the broker misses a batch before it.

        A batch that was given up meanwhile isn't sent again.
        """
        self.in_flight.remove(batch)
        self.retry_at = max(self.retry_at, retry_at)
        if gap and self._idempotent and self.is_first(batch):
            self._break(batch.order, certain=False)
        if batch.done:
            self._give_up(batch)
        else:
            self._recovering = True
            self._insert(batch)

    def is_first(self, batch: ProducerBatch) -> bool:
        """Whether all batches sent before it are completed."""
        return all(other.order > batch.order for other in chain(self.in_flight, self.retries))

    def refused(self, batch: ProducerBatch) -> None:
        self.in_flight.remove(batch)
        self._give_up(batch)

    def _give_up(self, batch: ProducerBatch) -> None:
        """The batch was sent, and won't be sent again."""
        if batch.doubtful:
            self._doubtful_until = (
                batch.order if self._doubtful_until is None else max(self._doubtful_until, batch.order)
            )
        elif self._idempotent:
            self._break(batch.order, certain=True)

    def _break(self, order: Order, *, certain: bool) -> None:
        if self._broken_from is None or order < self._broken_from:
            self._broken_from, self._break_is_certain = order, certain

    def _insert(self, batch: ProducerBatch) -> None:
        self.retries.append(batch)
        self.retries.sort(key=_order)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Queues the parts of a split batch, which share its sequences and its place."""
        self.in_flight.remove(batch)
        sequence = batch.sequence
        for part in parts:
            if batch.sequence >= 0:
                part.identity, part.sequence = batch.identity, sequence
                sequence = next_sequence(sequence, part.count)
            self._insert(part)
        self._recovering = True

    def expire(self, deadline: float) -> list[ProducerBatch]:
        """Gives up and returns the batches created at `deadline` (ms) or before.

        Those in flight stay there until their response: it tells which sequence is next.
        """
        expired = [batch for batch in self.in_flight if batch.created <= deadline and not batch.done]
        for batch in [batch for batch in self.retries if batch.created <= deadline]:
            self.retries.remove(batch)
            expired.append(batch)
            self._give_up(batch)
        while self.waiting and self.waiting[0].created <= deadline:
            expired.append(self.waiting.popleft())
        if self.open is not None and self.open.created <= deadline:
            expired.append(self.open)
            self.open = None
        return expired

    def drop(self) -> list[ProducerBatch]:
        """Gives up and returns the batches that aren't in flight."""
        dropped = [*self.retries, *self.waiting]
        if self.open is not None:
            dropped.append(self.open)
        for batch in self.retries:
            self._give_up(batch)
        self.retries.clear()
        self.waiting.clear()
        self.open = None
        return dropped


def _order(batch: ProducerBatch) -> Order:
    return batch.order
