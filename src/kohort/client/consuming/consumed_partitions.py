"""The consumed partition info: each partition's broker, fetch state, queue, and fetched, given and consumed offsets.

No I/O and no clock: callers pass `now`, in ms of any clock. Fetch states are those of Kafka's `SubscriptionState`.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kohort.client.consuming.completed_fetch import CompletedFetch, Piece
from kohort.client.errors import NoOffsetError
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.schema import NO_UUID

LATEST: Final = -1
EARLIEST: Final = -2

_NEVER: Final = -1
_MAX_FETCH_SIZE: Final = 2**30


class FetchState(enum.Enum):
    """What a partition needs before it can be fetched."""

    AWAIT_CALLBACK = "await callback"
    """The user's callback hasn't returned yet: `on_assign` before it's read, `on_revoke` after."""

    AWAIT_COMMITTED = "await committed"
    """The group's committed offset has to be looked up (Kafka's INITIALIZING)."""

    AWAIT_RESET = "await reset"
    """The offset of a time, or an end of the log, has to be looked up."""

    AWAIT_VALIDATION = "await validation"
    """There's another leader: does its log still have what was read (KIP-320)?"""

    FETCHING = "fetching"
    """It's fetched."""

    FAILED = "failed"
    """The user has to seek: the error was raised."""


@dataclass(slots=True, eq=False)
class ConsumedPartition:
    """A partition that is consumed.

    Attributes:
        fetch_size: bytes to fetch at once.
        broker: node id of the broker that it is fetched from; None if unknown.
        topic_id: the topic's id when it was first fetched, to tell another topic of the same name.
        reset_to: ms since 1970, `EARLIEST` or `LATEST`, in state AWAIT_RESET.
        fetched: the fetched offset: where to fetch next; -1 if unknown.
        position: the offset of the next record to give.
        consumed: the consumed offset: that of the first record that isn't consumed.
        position_epoch: leader epoch of the record before `position`; -1 if unknown.
        leader_epoch: of the leader that the position was validated with.
        paused: whether no records of it are given.
        queue: what was fetched and not given yet.
        queued: bytes of it, without the piece that the user works on.
        opened: that piece, the queue's first; it was decoded.
        error: raised to the user when the queue is empty.
        committed: the offset that was committed last, -1 if unknown.
        high_watermark, last_stable_offset, log_start_offset: of the last response; -1 if unknown.
        replica, replica_until: the preferred read replica (KIP-392), and for how long.
        retry_at: not to be fetched or looked up before.
        failures: errors in a row.
    """

    topic_partition: TopicPartition
    fetch_size: int
    broker: int | None = None
    topic_id: UUID = NO_UUID
    state: FetchState = FetchState.AWAIT_CALLBACK
    reset_to: int = LATEST
    fetched: int = _NEVER
    position: int = _NEVER
    consumed: int = _NEVER
    position_epoch: int = -1
    leader_epoch: int = -1
    paused: bool = False
    queue: deque[Piece] = field(default_factory=deque)
    queued: int = 0
    opened: Piece | None = None
    error: Exception | None = None
    committed: int = _NEVER
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    replica: int | None = None
    replica_until: float = 0
    retry_at: float = 0
    failures: int = 0

    @property
    def fetchable(self) -> bool:
        return self.state is FetchState.FETCHING and not self.paused and self.error is None

    @property
    def full(self) -> bool:
        return self.queued >= self.fetch_size

    def succeeded(self) -> None:
        self.failures = 0
        self.retry_at = 0


class ConsumedPartitions:
    """All partitions that a consumer reads.

    Args:
        fetch_size: bytes to fetch at once of each (`max_partition_fetch_bytes`).
        reset_to: returns where to begin without an offset (`auto_offset_reset`): ms since 1970, `EARLIEST` or `LATEST`,
            None to raise `NoOffsetError` instead.

    Attributes:
        queued: bytes that are queued of all.
    """

    def __init__(self, fetch_size: int, reset_to: Callable[[], int | None] = lambda: LATEST) -> None:
        self._fetch_size = fetch_size
        self._reset_to = reset_to
        self.by_name: dict[TopicPartition, ConsumedPartition] = {}
        self._ready: dict[TopicPartition, ConsumedPartition] = {}
        self.queued = 0

    def __iter__(self) -> Iterator[ConsumedPartition]:
        return iter(self.by_name.values())

    def __getitem__(self, partition: TopicPartition) -> ConsumedPartition:
        """The partition's info.

        Raises:
            ValueError: it isn't assigned.
        """
        try:
            return self.by_name[partition]
        except KeyError:
            assigned = ", ".join(map(str, sorted(self.by_name))) or "nothing"
            raise ValueError(f"{partition} isn't assigned to this consumer, but {assigned}") from None

    def add(
        self, partitions: Iterable[TopicPartition], state: FetchState = FetchState.AWAIT_CALLBACK
    ) -> list[ConsumedPartition]:
        """Adds partitions, and returns those that are new; the others stay as they are."""
        added = []
        for name in partitions:
            if name not in self.by_name:
                partition = self.by_name[TopicPartition(*name)] = ConsumedPartition(
                    TopicPartition(*name), self._fetch_size
                )
                partition.state = state
                added.append(partition)
        return added

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        for name in list(partitions):
            if partition := self.by_name.get(name):
                self.clear(partition)
                partition.state = FetchState.FAILED  # for tasks that still refer to it
                del self.by_name[name]

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Stops fetching partitions that are being revoked, and clears their queues."""
        for name in partitions:
            self.rewind(self.by_name[name])
            self.by_name[name].state = FetchState.AWAIT_CALLBACK

    def release(self, partitions: Iterable[ConsumedPartition]) -> None:
        """The user's callback has returned: begins where it seeked to, else at the committed offset."""
        for partition in partitions:
            if partition.state is FetchState.AWAIT_CALLBACK:
                partition.state = FetchState.AWAIT_COMMITTED

    # Positions.

    def seek(self, partition: ConsumedPartition, offset: int, epoch: int = -1) -> None:
        """Moves to an offset, and clears the queue."""
        self.clear(partition)
        partition.fetched = partition.position = partition.consumed = offset
        partition.committed = _NEVER
        partition.position_epoch = epoch
        partition.state = FetchState.FETCHING if epoch < 0 else FetchState.AWAIT_VALIDATION
        partition.leader_epoch = -1
        partition.succeeded()

    def reset(self, partition: ConsumedPartition, to: int) -> None:
        """Moves to a time or an end of the log, which has to be looked up."""
        self.clear(partition)
        partition.fetched = partition.position = partition.consumed = _NEVER
        partition.state = FetchState.AWAIT_RESET
        partition.reset_to = to
        partition.succeeded()

    def reset_by_policy(self, partition: ConsumedPartition, reason: str, *, to: int | None = None) -> None:
        """Without an offset to go on from, does as `auto_offset_reset` says.

        With `to`, that setting only says whether to raise `NoOffsetError`, and not where to go on.
        """
        policy = self._reset_to()
        to = policy if to is None else to
        if policy is None or to is None:
            offset = None if partition.fetched < 0 else partition.fetched
            partition.state = FetchState.FAILED
            self.fail(partition, NoOffsetError({partition.topic_partition: offset}, reason))
        elif partition.queue:
            # Queued records are still good, and the lookup would set the position: it waits until they were given.
            partition.state = FetchState.AWAIT_RESET
            partition.reset_to = to
        else:
            self.reset(partition, to)

    def truncated(self, partition: ConsumedPartition, end: int) -> None:
        """A new leader's log was truncated: it ends at `end`, or (-1) has none of the leader epoch (KIP-320)."""
        if self._reset_to() is not None and end >= 0:
            self.seek(partition, end)
        else:
            self.reset_by_policy(partition, "the new leader's log lacks what was read here")

    def pause(self, partition: ConsumedPartition) -> None:
        """Gives no records until `resume`; the queue stays."""
        partition.paused = True
        self._ready.pop(partition.topic_partition, None)
        if partition.opened is not None:
            self._add_queued(partition, partition.opened.size)
            partition.opened = None

    def resume(self, partition: ConsumedPartition) -> None:
        partition.paused = False
        self._mark_ready(partition)

    def rewind(self, partition: ConsumedPartition) -> None:
        """Clears the queue, and fetches again from the position on."""
        self.clear(partition)
        partition.fetched = partition.position

    def clear(self, partition: ConsumedPartition) -> None:
        """Clears a partition's queue and error."""
        self._add_queued(partition, -partition.queued)
        partition.queue.clear()
        partition.opened = None
        partition.error = None
        self._ready.pop(partition.topic_partition, None)

    def forget_paused(self) -> None:
        """Makes room: clears the queues of paused partitions, which are fetched again later."""
        for partition in self:
            if partition.paused and partition.queue:
                self.rewind(partition)

    # Queues: fetched data in, records for the user out.

    def add_fetched(self, partition: ConsumedPartition, fetch: CompletedFetch) -> None:
        for piece in fetch.pieces:
            partition.queue.append(piece)
            self._add_queued(partition, piece.size)
        partition.fetched = fetch.next_offset
        if fetch.error is not None:
            partition.error = fetch.error
        if fetch.cut_off:
            partition.fetch_size = min(2 * partition.fetch_size, _MAX_FETCH_SIZE)
        self._mark_ready(partition)

    def fail(self, partition: ConsumedPartition, error: Exception) -> None:
        """Raises an error to the user, after the queued records."""
        partition.error = error
        self._mark_ready(partition)

    def next_ready(self) -> ConsumedPartition | None:
        """Returns a partition with records or an error for the user; the same one, until `piece_done` or `rotate`."""
        return next(iter(self._ready.values()), None)

    def rotate(self, partition: ConsumedPartition) -> None:
        """Moves a partition behind the others."""
        if self._ready.pop(partition.topic_partition, None) is not None:
            self._mark_ready(partition)

    def open(self, partition: ConsumedPartition) -> None:
        """The user begins with the partition's first piece: there's room for another."""
        piece = partition.queue[0]
        if partition.opened is not piece:
            partition.opened = piece
            self._add_queued(partition, -piece.size)

    def stop_at(self, partition: ConsumedPartition, offset: int, error: Exception) -> None:
        """Stops at `offset`, and raises the error until the user seeks."""
        self.clear(partition)
        partition.fetched = partition.position = partition.consumed = offset
        self.fail(partition, error)

    def piece_done(self, partition: ConsumedPartition, piece: Piece, rest: Piece | None = None) -> None:
        """The partition's first piece was given to its end, except for its `rest`."""
        if partition.queue and partition.queue[0] is piece:
            self.open(partition)
            partition.queue.popleft()
            partition.opened = None
            if rest is not None:
                partition.queue.appendleft(rest)
                self._add_queued(partition, rest.size)
            self.rotate(partition)

    def _add_queued(self, partition: ConsumedPartition, size: int) -> None:
        partition.queued += size
        self.queued += size

    def _mark_ready(self, partition: ConsumedPartition) -> None:
        if not partition.paused and (partition.queue or partition.error is not None):
            self._ready[partition.topic_partition] = partition

    # For fetchers, lookups and commits.

    def in_state(self, state: FetchState, now: float) -> list[ConsumedPartition]:
        """Returns the partitions in a state that may be retried now, and have nothing queued."""
        return [
            partition
            for partition in self
            if partition.state is state and partition.retry_at <= now and not partition.queue
        ]

    def fetchable_from(self, node_id: int) -> list[ConsumedPartition]:
        return [partition for partition in self if partition.broker == node_id and partition.fetchable]

    def brokers(self) -> set[int]:
        return {partition.broker for partition in self if partition.broker is not None}

    def to_commit(
        self, partitions: Collection[TopicPartition] | None = None, *, given: bool
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Returns the offsets to commit that changed: up to what was given, or only to what is consumed."""
        offsets = {}
        for name, partition in self.by_name.items():
            offset = partition.position if given else partition.consumed
            # The consumed offset is behind a commit of the user's only by the records in hands.
            changed = offset != partition.committed if given else offset > partition.committed
            if offset >= 0 and changed and (partitions is None or name in partitions):
                offsets[name] = OffsetAndMetadata(offset, partition.position_epoch)
        return offsets

    def committed(self, offsets: Iterable[tuple[TopicPartition, OffsetAndMetadata]]) -> None:
        for name, (offset, *_) in offsets:
            if partition := self.by_name.get(name):
                partition.committed = offset
