"""The consumed partition info: where each partition is read, up to where it was fetched, given and consumed.

No I/O, and no clock: who needs the time passes `now`, in ms of whatever clock.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kohort.client.consuming.answers import Answer, Piece
from kohort.client.errors import NoOffsetError
from kohort.client.types import OffsetAndMetadata, TopicPartition
from kohort.protocol.schema import NO_UUID

__all__ = ["EARLIEST", "LATEST", "ConsumedPartition", "ConsumedPartitions", "Phase"]

LATEST: Final = -1
EARLIEST: Final = -2

_NEVER: Final = -1
_MAX_FETCH_SIZE: Final = 2**30


class Phase(enum.Enum):
    """What a partition needs before it can be fetched."""

    HELD = "held"
    """The user's callback hasn't returned yet, before it's read or after."""

    COMMITTED = "committed"
    """The offset that the group has committed is to be looked up."""

    RESET = "reset"
    """The offset of a time, or an end of the log, is to be looked up."""

    CHECK = "check"
    """There's another leader: does its log still have what was read (KIP-320)?"""

    READY = "ready"
    """Nothing: it's fetched."""

    FAILED = "failed"
    """Somebody has to seek first: the user was told."""


@dataclass(slots=True, eq=False)
class ConsumedPartition:
    """A partition that is consumed.

    Attributes:
        topic_partition: which.
        fetch_size: bytes to ask for at once.
        broker: node id of the broker it is fetched from; None while none is known.
        topic_id: the topic's id when it was first fetched, so that another topic of the same name isn't taken for it.
        phase: what it needs first.
        reset_to: ms since 1970, `EARLIEST` or `LATEST`, in phase `RESET`.
        fetched: the fetched offset: where to fetch next; -1 while not known.
        position: the offset of the next record to give.
        consumed: the consumed offset: that of the next record that the user isn't done with.
        position_epoch: leader epoch of the record before `position`; -1 if not known.
        leader_epoch: of the leader that the position was checked with.
        paused: whether nothing of it is given.
        queue: what was fetched and not given yet.
        queued: bytes of it, without the piece that the user works on.
        opened: that piece, the queue's first; it was decoded.
        fault: what is to be raised when the queue is empty.
        committed: the offset that was committed last, as far as known.
        high_watermark, last_stable_offset, log_start_offset: as the broker told last; -1 if it hasn't.
        replica, replica_until: a replica that the leader would rather have it fetched from (KIP-392), and for how long.
        retry_at: not to be asked for before.
        failures: how often in a row asking for it failed.
    """

    topic_partition: TopicPartition
    fetch_size: int
    broker: int | None = None
    topic_id: UUID = NO_UUID
    phase: Phase = Phase.HELD
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
    fault: Exception | None = None
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
        """Whether it's to be fetched, if there is room."""
        return self.phase is Phase.READY and not self.paused and self.fault is None

    @property
    def full(self) -> bool:
        """Whether enough is queued of it."""
        return self.queued >= self.fetch_size

    def succeeded(self) -> None:
        """Asking for it went well."""
        self.failures = 0
        self.retry_at = 0


class ConsumedPartitions:
    """All partitions that a consumer reads.

    Args:
        fetch_size: bytes to ask for at once of each (`max_partition_fetch_bytes`).
        reset_to: says where to begin without an offset: ms since 1970, `EARLIEST` or `LATEST`, or None to tell the
            user instead.

    Attributes:
        by_name: all of them.
        queued: bytes that are queued of all.
    """

    def __init__(self, fetch_size: int, reset_to: Callable[[], int | None] = lambda: LATEST) -> None:
        self._fetch_size = fetch_size
        self._reset_to = reset_to
        self.by_name: dict[TopicPartition, ConsumedPartition] = {}
        self._with_news: dict[TopicPartition, ConsumedPartition] = {}
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

    def add(self, partitions: Iterable[TopicPartition], phase: Phase = Phase.HELD) -> list[ConsumedPartition]:
        """Begin with partitions; those that are there already stay as they are."""
        added = []
        for name in partitions:
            if name not in self.by_name:
                partition = self.by_name[TopicPartition(*name)] = ConsumedPartition(
                    TopicPartition(*name), self._fetch_size
                )
                partition.phase = phase
                added.append(partition)
        return added

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        """End with partitions, and forget what is queued of them."""
        for name in list(partitions):
            if partition := self.by_name.get(name):
                self.clear(partition)
                partition.phase = Phase.FAILED  # whoever still holds it shall do nothing with it
                del self.by_name[name]

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch nothing more of partitions that are about to go, and forget what is queued of them."""
        for name in partitions:
            self.rewind(self.by_name[name])
            self.by_name[name].phase = Phase.HELD

    def release(self, partitions: Iterable[ConsumedPartition]) -> None:
        """The user's callback has returned: begin where they said, else where the group left off."""
        for partition in partitions:
            if partition.phase is Phase.HELD:
                partition.phase = Phase.COMMITTED

    # Positions.

    def seek(self, partition: ConsumedPartition, offset: int, epoch: int = -1) -> None:
        """Go on at an offset; what is queued is forgotten."""
        self.clear(partition)
        partition.fetched = partition.position = partition.consumed = offset
        partition.committed = _NEVER
        partition.position_epoch = epoch
        partition.phase = Phase.READY if epoch < 0 else Phase.CHECK
        partition.leader_epoch = -1
        partition.succeeded()

    def reset(self, partition: ConsumedPartition, to: int) -> None:
        """Go on at a time or an end of the log, which has to be looked up."""
        self.clear(partition)
        partition.fetched = partition.position = partition.consumed = _NEVER
        partition.phase = Phase.RESET
        partition.reset_to = to
        partition.succeeded()

    def reset_by_policy(self, partition: ConsumedPartition, reason: str, *, to: int | None = None) -> None:
        """There's no offset to go on from, or not any more: do as `auto_offset_reset` says.

        With `to`, only whether to tell the user is up to that, and not where to go on.
        """
        policy = self._reset_to()
        to = policy if to is None else to
        if policy is None or to is None:
            offset = None if partition.fetched < 0 else partition.fetched
            partition.phase = Phase.FAILED
            self.fail(partition, NoOffsetError({partition.topic_partition: offset}, reason))
        elif partition.queue:
            # What was fetched before is still good, and the lookup would set the position: it waits for its turn.
            partition.phase = Phase.RESET
            partition.reset_to = to
        else:
            self.reset(partition, to)

    def truncated(self, partition: ConsumedPartition, end: int) -> None:
        """A new leader's log lacks what was read: it ends at `end`, or (-1) has nothing of it at all (KIP-320)."""
        if self._reset_to() is not None and end >= 0:
            self.seek(partition, end)
        else:
            self.reset_by_policy(partition, "the new leader's log lacks what was read here")

    def pause(self, partition: ConsumedPartition) -> None:
        """Give nothing of it until `resume`; what is queued stays."""
        partition.paused = True
        self._with_news.pop(partition.topic_partition, None)
        if partition.opened is not None:
            self._count(partition, partition.opened.size)
            partition.opened = None

    def resume(self, partition: ConsumedPartition) -> None:
        """Give its records again."""
        partition.paused = False
        self._announce(partition)

    def rewind(self, partition: ConsumedPartition) -> None:
        """Forget what is queued, and fetch again from the position on."""
        self.clear(partition)
        partition.fetched = partition.position

    def clear(self, partition: ConsumedPartition) -> None:
        """Forget what is queued of a partition, and what was wrong with it."""
        self._count(partition, -partition.queued)
        partition.queue.clear()
        partition.opened = None
        partition.fault = None
        self._with_news.pop(partition.topic_partition, None)

    def forget_paused(self) -> None:
        """Make room: what is queued of paused partitions will be fetched again."""
        for partition in self:
            if partition.paused and partition.queue:
                self.rewind(partition)

    # What comes, and what goes to the user.

    def put(self, partition: ConsumedPartition, answer: Answer) -> None:
        """Queue what a fetch brought."""
        for piece in answer.pieces:
            partition.queue.append(piece)
            self._count(partition, piece.size)
        partition.fetched = answer.next_offset
        if answer.fault is not None:
            partition.fault = answer.fault
        if answer.cut_off:
            partition.fetch_size = min(2 * partition.fetch_size, _MAX_FETCH_SIZE)
        self._announce(partition)

    def fail(self, partition: ConsumedPartition, fault: Exception) -> None:
        """Have the user told, after what is queued."""
        partition.fault = fault
        self._announce(partition)

    def next_with_news(self) -> ConsumedPartition | None:
        """A partition that has something to give or to tell; the same one, until `done_with` or `later`."""
        return next(iter(self._with_news.values()), None)

    def later(self, partition: ConsumedPartition) -> None:
        """Let the other partitions come first."""
        if self._with_news.pop(partition.topic_partition, None) is not None:
            self._announce(partition)

    def open(self, partition: ConsumedPartition) -> None:
        """The user begins with the partition's first piece: there's room for another."""
        piece = partition.queue[0]
        if partition.opened is not piece:
            partition.opened = piece
            self._count(partition, -piece.size)

    def stop_at(self, partition: ConsumedPartition, offset: int, fault: Exception) -> None:
        """Go no further than `offset`, and have the user told why, until they seek."""
        self.clear(partition)
        partition.fetched = partition.position = partition.consumed = offset
        self.fail(partition, fault)

    def done_with(self, partition: ConsumedPartition, piece: Piece, rest: Piece | None = None) -> None:
        """The partition's first piece was given to its end, or but for its `rest`."""
        if partition.queue and partition.queue[0] is piece:
            self.open(partition)
            partition.queue.popleft()
            partition.opened = None
            if rest is not None:
                partition.queue.appendleft(rest)
                self._count(partition, rest.size)
            self.later(partition)

    def _count(self, partition: ConsumedPartition, size: int) -> None:
        partition.queued += size
        self.queued += size

    def _announce(self, partition: ConsumedPartition) -> None:
        if not partition.paused and (partition.queue or partition.fault is not None):
            self._with_news[partition.topic_partition] = partition

    # What fetchers and lookups ask.

    def in_phase(self, phase: Phase, now: float) -> list[ConsumedPartition]:
        """The partitions that need something, and may be asked for now."""
        return [
            partition
            for partition in self
            if partition.phase is phase and partition.retry_at <= now and not partition.queue
        ]

    def wanted(self, node_id: int) -> list[ConsumedPartition]:
        """The partitions to fetch from a broker."""
        return [partition for partition in self if partition.broker == node_id and partition.fetchable]

    def brokers(self) -> set[int]:
        """The brokers to fetch from."""
        return {partition.broker for partition in self if partition.broker is not None}

    def to_commit(
        self, partitions: Collection[TopicPartition] | None = None, *, given: bool
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """What there is to commit that wasn't: up to what was given, or only to what is consumed."""
        offsets = {}
        for name, partition in self.by_name.items():
            offset = partition.position if given else partition.consumed
            # Nothing consumed is behind what the user has committed, but for the record they have in hands.
            news = offset != partition.committed if given else offset > partition.committed
            if offset >= 0 and news and (partitions is None or name in partitions):
                offsets[name] = OffsetAndMetadata(offset, partition.position_epoch)
        return offsets

    def committed(self, offsets: Iterable[tuple[TopicPartition, OffsetAndMetadata]]) -> None:
        """Note what was committed."""
        for name, (offset, *_) in offsets:
            if partition := self.by_name.get(name):
                partition.committed = offset
