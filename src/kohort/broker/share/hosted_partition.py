"""A share partition and what is around it: its state is loaded and written, its locks expire, its fetches wait.

What it decides is in `coordinator/share_partition/`; here is when, and what becomes of it: a change is written by the
share coordinator, then committed, and answered then and not before.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from kohort.broker.reply import Reply, when_replied
from kohort.broker.share.group_configs import ShareGroupSettings
from kohort.broker.share.offset_reset import StartOffsets
from kohort.broker.share.reading import FetchedBatches, end_offset
from kohort.broker.topics import Partition
from kohort.coordinator import share_state
from kohort.coordinator.share_partition import (
    AckBatch,
    Acquired,
    AcquireMode,
    Change,
    DeadLetter,
    PersistedState,
    RecordState,
    SharePartition,
    StateBatch,
)
from kohort.coordinator.timing_wheel import Timer, TimingWheel
from kohort.protocol.errors import ErrorCode, KafkaError

log = logging.getLogger("kohort.broker.share")

RETRY_MS: Final = 100
"""Time between two tries to load a state while the share coordinator isn't ready."""

_NOT_READY: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
)
_CLIENT_ERRORS: Final = {
    **dict.fromkeys(_NOT_READY, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""What clients are told of the share coordinator's errors; UNKNOWN_SERVER_ERROR for all others."""

_FENCING: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER}
)
"""After these the partition's state here is of no use: the next fetch loads it again."""

Acknowledged = Callable[[ErrorCode], None]
"""Called once acknowledgements are persisted, with NONE, or with why they aren't."""


class Persister(Protocol):
    """Keeps the states of share partitions: the share coordinator."""

    def read(
        self, group_id: str, topic_id: UUID, partition: int, leader_epoch: int
    ) -> share_state.ReadOutcome | Reply[share_state.ReadOutcome]:
        """Reads a state, and fences leaders with a lower epoch."""
        ...

    def write(
        self,
        group_id: str,
        topic_id: UUID,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[share_state.StateBatch],
    ) -> share_state.Outcome | Reply[share_state.Outcome]:
        """Writes what has changed in a state."""
        ...


class Status(enum.Enum):
    """LOADING until its state is read; then ACTIVE. A FAILED one couldn't be read; a FENCED one is out of use."""

    LOADING = enum.auto()
    ACTIVE = enum.auto()
    FAILED = enum.auto()
    FENCED = enum.auto()


class HostedSharePartition:
    """A partition as a share group has it.

    Args:
        settings: returns the group's settings as they are now.
        clock: ms since 1970.
        start_offsets: finds where the group begins, if its state doesn't say it.
        write_dead_letters: writes dead letters, and calls `dead_lettered` when they are safe.
        changed: called with it when it is loaded, when records may be available, and when it is out of use.

    Attributes:
        machine: the records in flight; None unless ACTIVE.
        error: why it is FAILED or FENCED.
    """

    def __init__(
        self,
        group_id: str,
        partition: Partition,
        *,
        settings: Callable[[], ShareGroupSettings],
        persister: Persister,
        start_offsets: StartOffsets,
        write_dead_letters: Callable[[HostedSharePartition, Sequence[DeadLetter]], None],
        wheel: TimingWheel,
        clock: Callable[[], int],
        changed: Callable[[HostedSharePartition], object],
    ) -> None:
        self.group_id = group_id
        self.partition = partition
        self.status = Status.LOADING
        self.machine: SharePartition | None = None
        self.error = ErrorCode.NONE
        self._settings = settings
        self._persister = persister
        self._start_offsets = start_offsets
        self._write_dead_letters = write_dead_letters
        self._wheel = wheel
        self._clock = clock
        self._changed = changed
        self._timer: Timer | None = None
        self._under_way = 0
        self._retires = False

    @property
    def key(self) -> tuple[UUID, int]:
        return self.partition.topic.id, self.partition.index

    @property
    def settings(self) -> ShareGroupSettings:
        return self._settings()

    def _now(self) -> int:
        """Never before the timers' time: where the clock is set back, they would run again and again."""
        return max(self._clock(), self._wheel.now)

    def __str__(self) -> str:
        return f"{self.group_id}:{self.partition}"

    # Loading

    def load(self) -> None:
        """Reads its state; fetches wait meanwhile."""
        if self.status is Status.LOADING:
            partition = self.partition
            read = self._persister.read(self.group_id, partition.topic.id, partition.index, partition.leader_epoch)
            when_replied(read, self._loaded)

    def _loaded(self, read: share_state.ReadOutcome) -> None:
        if self.status is not Status.LOADING:
            return
        if read.error_code in _NOT_READY:
            self._timer = self._wheel.add(self._now() + RETRY_MS, self.load)
            return
        try:
            if read.error_code:
                raise KafkaError(_CLIENT_ERRORS.get(read.error_code, ErrorCode.UNKNOWN_SERVER_ERROR), read.message)
            if read.start_offset >= 0:
                self._restore(read)
            else:
                self._start_offsets.find(
                    self.partition.log, self.settings.auto_offset_reset, self._now(), partial(self._begin, read)
                )
        except (KafkaError, ValueError) as error:
            self._fail(error)

    def _begin(self, read: share_state.ReadOutcome, begin: int | KafkaError) -> None:
        """Goes on with where the group begins, as its state doesn't say it."""
        if self.status is not Status.LOADING:
            return
        try:
            if isinstance(begin, KafkaError):
                raise begin
            self._restore(read, begin)
        except (KafkaError, ValueError) as error:
            self._fail(error)

    def _fail(self, error: KafkaError | ValueError) -> None:
        log.warning("share partition %s can't be loaded: %s", self, error)
        code = error.code if isinstance(error, KafkaError) else ErrorCode.UNKNOWN_SERVER_ERROR
        self._end(Status.FAILED, code)

    def _restore(self, read: share_state.ReadOutcome, begin: int = -1) -> None:
        """Makes it active with the state that was read.

        Args:
            begin: where the group begins; -1 if the state says it.

        Raises:
            ValueError: states contradict each other.
        """
        self.machine = self._restored(read, begin)
        self.status = Status.ACTIVE
        if letters := self.machine.dead_letters():
            self._send(letters)
        self._arm()
        self._changed(self)

    def _restored(self, read: share_state.ReadOutcome, begin: int) -> SharePartition:
        persisted = PersistedState(
            read.state_epoch,
            read.start_offset,
            max(read.delivery_complete_count, 0),
            tuple(
                StateBatch(
                    batch.first_offset, batch.last_offset, RecordState(batch.delivery_state), batch.delivery_count
                )
                for batch in read.batches
            ),
        )
        return SharePartition(self.settings.partition, persisted, begin)

    # Members' records

    def offset_to_read(self) -> int | None:
        """The offset to read next; None if nothing can be given out now."""
        machine = self.machine
        if machine is None:
            return None
        self._keep_to_the_log(machine)
        machine.settings = self.settings.partition
        return machine.next_fetch_offset

    def has_records(self, offset: int) -> bool:
        """Whether the log has records from an offset on that the group may see."""
        return end_offset(self.partition.log, committed=self.settings.committed) > offset

    def acquire(
        self,
        member_id: str,
        offset: int,
        batches: FetchedBatches,
        *,
        max_records: int,
        batch_size: int,
        mode: AcquireMode,
    ) -> Sequence[Acquired]:
        """Locks what a member can be given of batches that were read from an offset on; the locks expire."""
        machine = self.machine
        if machine is None or not batches.headers:
            return ()
        acquired = machine.acquire(
            member_id,
            batches.ranges,
            fetch_offset=offset,
            max_records=max_records,
            now=self._now(),
            batch_size=batch_size,
            mode=mode,
            aborted=batches.aborted,
        )
        found = machine.flush()
        if found.needs_write:
            self._write(found)
        else:
            machine.commit(found)
            self._arm()
        return acquired

    def acknowledge(self, member_id: str, batches: Sequence[AckBatch], done: Acknowledged) -> None:
        """Takes a member's acknowledgements, all or none; `done` is told once they are persisted."""
        machine = self.machine
        if machine is None:
            done(self.error or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return
        machine.settings = self.settings.partition
        try:
            change = machine.acknowledge(member_id, batches, self._now())
        except KafkaError as error:
            done(error.code)
        else:
            self._write(change, done)

    def release(self, member_id: str) -> None:
        """Makes a member's records available, as its session has ended."""
        if self.machine is not None:
            self._write(self.machine.release(member_id))

    def dead_lettered(self, letters: Sequence[DeadLetter]) -> None:
        """Archives records whose dead letters are written."""
        if self.machine is not None:
            ranges = [(letter.first_offset, letter.last_offset) for letter in letters]
            self._write(self.machine.dead_lettered(ranges))
        self._ended()

    def retire(self) -> None:
        """Ends its use, as nobody fetches from it: once all is written, for dead letters would be written twice."""
        self._retires = True
        if not self._under_way:
            self.fence(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def revive(self) -> None:
        """Somebody fetches from it again."""
        self._retires = False

    def fence(self, error: ErrorCode) -> None:
        """Ends its use: its state is of another epoch, or its group or topic is gone."""
        if self.status in (Status.LOADING, Status.ACTIVE):
            self._end(Status.FENCED, error)

    def _keep_to_the_log(self, machine: SharePartition) -> None:
        """Gives up what retention or DeleteRecords has taken away."""
        begin = self.partition.log.log_start_offset
        if machine.start_offset < begin:
            self._write(machine.advance_start(begin))

    def _write(self, change: Change, done: Acknowledged | None = None) -> None:
        """Persists a change, and commits it, or rolls it back."""
        machine = self.machine
        assert machine is not None

        def written(outcome: share_state.Outcome) -> None:
            code = outcome.error_code
            if not code:
                more = machine.commit(change)
                if change.dead_letters:
                    self._send(change.dead_letters)
            else:
                more = machine.rollback(change)
                log.warning("the state of share partition %s can't be written: %s", self, outcome.message or code.name)
                code = _CLIENT_ERRORS.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
                if code in _FENCING:
                    self.fence(code)
            if done is not None:
                done(code)
            self._arm()
            if more:
                self._changed(self)
            self._ended()

        self._under_way += 1
        if not change.needs_write:
            written(share_state.Outcome())
            return
        partition = self.partition
        when_replied(
            self._persister.write(
                self.group_id,
                partition.topic.id,
                partition.index,
                machine.state_epoch,
                partition.leader_epoch,
                change.start_offset,
                change.delivery_complete_count,
                [share_state.StateBatch(*batch) for batch in change.batches],
            ),
            written,
        )

    def _send(self, letters: Sequence[DeadLetter]) -> None:
        self._under_way += 1
        self._write_dead_letters(self, letters)

    def _ended(self) -> None:
        """A write has ended, of states or of dead letters."""
        self._under_way -= 1
        if self._retires:
            self.retire()

    def _arm(self) -> None:
        machine = self.machine
        due = None if machine is None or self.status is not Status.ACTIVE else machine.next_lock_deadline
        if self._timer is not None:
            if due is not None and self._timer.waiting and self._timer.deadline <= due:
                return  # it looks again then
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = self._wheel.add(int(due), self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self.machine is not None and self.status is Status.ACTIVE:
            self._write(self.machine.expire_locks(self._now()))
            self._changed(self)  # the records are available at once, though their state is perhaps still to be written

    def _end(self, status: Status, error: ErrorCode) -> None:
        self.status = status
        self.error = error
        self.machine = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._changed(self)
