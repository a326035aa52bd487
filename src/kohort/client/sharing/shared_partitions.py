"""What a share consumer has of each partition: locked records that the user hasn't got yet, and the book of the others.

No socket and no clock: times are ms of one clock, given as `now`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kohort.client.sharing.acknowledgements import (
    GAP,
    Acknowledgement,
    AcknowledgementBook,
    AcknowledgeType,
    OffsetSpan,
)
from kohort.client.sharing.acquired import AcquiredPiece
from kohort.client.sharing.share_session import PartitionKey
from kohort.client.types import TopicPartition

_FINAL: Final = (AcknowledgeType.ACCEPT, AcknowledgeType.REJECT)


class AcknowledgementResult(NamedTuple):
    """What a broker did about acknowledgements.

    Attributes:
        partition: of these offsets.
        acknowledgements: ranges of offsets with their types.
        error: why they don't count, so that the records will be handed out again; None if they do.
    """

    partition: TopicPartition
    acknowledgements: tuple[Acknowledgement, ...]
    error: Exception | None


@dataclass(slots=True, eq=False)
class SharedPartition:
    """A partition that is assigned, or has offsets that aren't settled yet.

    Attributes:
        at, key: its name, and the topic's id with the number.
        book: what became of its offsets.
        node_id: the leader that has locked them.
        assigned: whether to fetch it.
        retry_at, acknowledge_at: not to be fetched, or sent what has to be sent again, before.
        failures: errors in a row.
    """

    at: TopicPartition
    key: PartitionKey
    book: AcknowledgementBook = field(default_factory=AcknowledgementBook)
    node_id: int | None = None
    assigned: bool = True
    retry_at: float = 0.0
    acknowledge_at: float = 0.0
    failures: int = 0

    def sendable(self, now: float) -> bool:
        """Whether there's something to acknowledge now."""
        return self.book.sendable and (self.acknowledge_at <= now or not self.book.must_send)


class Buffered(NamedTuple):
    """A piece that waits for the user."""

    partition: SharedPartition
    acquired: AcquiredPiece


@dataclass(eq=False)
class Barrier:
    """Waits for what was acknowledged so far; `errors` has a partition with an error if some of it doesn't count."""

    tickets: dict[SharedPartition, int]
    done: Callable[[], None]
    errors: dict[TopicPartition, Exception | None] = field(default_factory=dict)


class SharedPartitions:
    """All partitions of a consumer.

    Args:
        report: called with every settled acknowledgement, once.

    Attributes:
        by_key: the partitions.
        buffer: pieces for the user, in the order they came.
        undelivered: acquired offsets in the buffer, by broker.
    """

    def __init__(self, report: Callable[[AcknowledgementResult], None]) -> None:
        self._report = report
        self.by_key: dict[PartitionKey, SharedPartition] = {}
        self.by_name: dict[TopicPartition, SharedPartition] = {}
        self.buffer: deque[Buffered] = deque()
        self.undelivered: Counter[int | None] = Counter()
        self._barriers: list[Barrier] = []
        self._failures: dict[TopicPartition, Exception] = {}

    def of(self, node_id: int) -> list[SharedPartition]:
        """Returns the partitions of a broker."""
        return [each for each in self.by_key.values() if each.node_id == node_id]

    def assign(self, names: Mapping[PartitionKey, TopicPartition], now: float) -> list[SharedPartition]:
        """Takes an assignment; returns the partitions that aren't in it any more."""
        for key, at in names.items():
            known = self.by_key.get(key)
            if known is None:
                known = self.by_key[key] = SharedPartition(at, key)
            known.assigned = True
            self.by_name[at] = known
        gone = [each for key, each in self.by_key.items() if each.assigned and key not in names]
        for each in gone:
            each.assigned = False
            self.release_buffered(each, now)
        self.tidy(now)
        return gone

    def tidy(self, now: float) -> None:
        """Forgets partitions that aren't assigned, once nothing of them is locked or unsettled."""
        for key, each in tuple(self.by_key.items()):
            locked = each.book.next_deadline(now) is not None
            if not (each.assigned or locked or each.book.sendable or each.book.in_flight):
                del self.by_key[key]
                if self.by_name.get(each.at) is each:
                    del self.by_name[each.at]

    # Records on their way to the user.

    def add(self, partition: SharedPartition, pieces: Iterable[AcquiredPiece]) -> None:
        """Puts acquired records into the buffer."""
        for piece in pieces:
            self.buffer.append(Buffered(partition, piece))
            self.undelivered[partition.node_id] += piece.offsets

    def next(self) -> Buffered | None:
        """Takes the next piece out of the buffer."""
        if not self.buffer:
            return None
        taken = self.buffer.popleft()
        self.undelivered[taken.partition.node_id] -= taken.acquired.offsets
        return taken

    def put_back(self, buffered: Buffered) -> None:
        """Puts a piece back, to be the next."""
        self.buffer.appendleft(buffered)
        self.undelivered[buffered.partition.node_id] += buffered.acquired.offsets

    def release_buffered(self, partition: SharedPartition, now: float) -> None:
        """Releases what the user hasn't got, so that others may have it at once.

        Only records in their first delivery: a group allows two at least, so none of them is used up unseen. Others
        are still given to the user.
        """
        for buffered in self._take_buffered(partition):
            if not buffered.acquired.first_delivery:
                self.add(partition, (buffered.acquired,))
                continue
            for first, last, _ in buffered.acquired.ranges:
                partition.book.acknowledge_rest(first, last, AcknowledgeType.RELEASE, now)

    def _take_buffered(self, partition: SharedPartition) -> list[Buffered]:
        """Takes a partition's pieces out of the buffer."""
        taken = [each for each in self.buffer if each.partition is partition]
        self.buffer = deque(each for each in self.buffer if each.partition is not partition)
        self.undelivered[partition.node_id] -= sum(each.acquired.offsets for each in taken)
        return taken

    # Settling.

    def lose(self, partition: SharedPartition, error: Exception, now: float) -> None:
        """The broker holds nothing for us any more."""
        for buffered in self._take_buffered(partition):
            for first, last, _ in buffered.acquired.ranges:
                partition.book.drop(first, last)
        self.settle(partition, partition.book.lose(), error)

    def settle(
        self, partition: SharedPartition, acknowledgements: Sequence[Acknowledgement], error: Exception | None
    ) -> None:
        """Reports what is settled."""
        told = tuple(each for each in acknowledgements if each.type != GAP)
        if told:
            for barrier in self._barriers:
                if partition in barrier.tickets and (error is not None or partition.at not in barrier.errors):
                    barrier.errors[partition.at] = error
            if error is not None and any(each.type in _FINAL for each in told):
                self._failures[partition.at] = error
            self._report(AcknowledgementResult(partition.at, told, error))
        self._check_barriers()

    def refuse(self, at: TopicPartition, spans: Iterable[OffsetSpan], kind: int, error: Exception) -> None:
        """Reports acknowledgements of offsets that aren't locked for us."""
        told = tuple(Acknowledgement(*span, kind) for span in spans)
        if told:
            self._failures[at] = error
            self._report(AcknowledgementResult(at, told, error))

    def take_failures(self) -> dict[TopicPartition, Exception]:
        """Returns, once, the partitions with records that count as done for the user, but not for the broker."""
        failures, self._failures = self._failures, {}
        return failures

    def barrier(self, done: Callable[[], None]) -> Barrier:
        """Calls a function when all that was acknowledged so far is settled."""
        barrier = Barrier({each: each.book.ticket() for each in self.by_key.values()}, done)
        self._barriers.append(barrier)
        self._check_barriers()
        return barrier

    def forget_barrier(self, barrier: Barrier) -> None:
        """Nobody waits for it any more."""
        if barrier in self._barriers:
            self._barriers.remove(barrier)

    def urgent(self, partitions: Collection[SharedPartition]) -> bool:
        """Whether someone waits for acknowledgements of these."""
        return any(each in barrier.tickets for barrier in self._barriers for each in partitions)

    def _check_barriers(self) -> None:
        for barrier in tuple(self._barriers):
            if all(partition.book.settled(ticket) for partition, ticket in barrier.tickets.items()):
                self._barriers.remove(barrier)
                barrier.done()
