"""A share fetch: gives a member records of its partitions, or waits until there are some.

It waits for the logs of its partitions (data arrives) and for the share partitions (records are released, a state is
loaded); whatever comes first, its deadline included, lets it read. What it reads is locked for the member at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kohort.broker.reply import Reply
from kohort.broker.share.hosted_partition import HostedSharePartition, Status
from kohort.broker.share.reading import PIECE_BYTES, end_offset, read_batches
from kohort.broker.share.sessions import PartitionKey
from kohort.coordinator.purgatory import DelayedOperation
from kohort.coordinator.share_partition import Acquired, AcquireMode
from kohort.protocol.errors import CorruptRecordError, ErrorCode, KafkaError
from kohort.protocol.records.batch import HEADER_SIZE, scan_batches
from kohort.protocol.schema import Records

__all__ = ["FetchedPartition", "ShareFetch", "ShareFetchLimits"]


@dataclass(frozen=True, slots=True)
class ShareFetchLimits:
    """What a fetch may return.

    Attributes:
        min_bytes: it waits for about as much.
        max_bytes: of all partitions; a first batch that is larger is returned all the same.
        max_records: to be locked; by mode, the rest of a batch comes as well.
        batch_size: of the ranges that they are locked in, at most.
    """

    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    mode: AcquireMode


class FetchedPartition(NamedTuple):
    """What a fetch returns of a partition."""

    key: PartitionKey
    error: ErrorCode = ErrorCode.NONE
    records: Records = b""
    acquired: Sequence[Acquired] = ()


class _Counted(NamedTuple):
    """The bytes of a log from an offset up to the following one, which aren't read again to be counted."""

    offset: int
    following: int
    size: int


class ShareFetch(DelayedOperation):
    """A fetch of a member; its cost is that of its partitions and of what it returns.

    Args:
        deadline: ms since 1970.
        partitions: in the order in which they are read.
        wanted: whether the member still has the session that it fetches in; else it isn't given records.

    Attributes:
        reply: what it returns of the partitions that have an error, or that records could have come of.
    """

    __slots__ = ("_abandoned", "_counted", "_limits", "_member_id", "_partitions", "_wanted", "reply")

    def __init__(
        self,
        deadline: int,
        member_id: str,
        partitions: Sequence[HostedSharePartition],
        limits: ShareFetchLimits,
        wanted: Callable[[], bool],
    ) -> None:
        super().__init__(deadline)
        self.reply: Reply[list[FetchedPartition]] = Reply()
        self._member_id = member_id
        self._partitions = partitions
        self._limits = limits
        self._wanted = wanted
        self._abandoned = False
        self._counted: dict[HostedSharePartition, _Counted] = {}

    @property
    def keys(self) -> list[Hashable]:
        """What it waits for."""
        return [*self._partitions, *dict.fromkeys(hosted.partition.log for hosted in self._partitions)]

    def abandon(self) -> None:
        """Ends it without locking records: its connection is closed."""
        self._abandoned = True
        self.force_complete()

    def try_complete(self) -> bool:
        """Completes it if there are enough bytes that the member may have, or all partitions have errors.

        Who asks for no bytes is answered at once, unless no partition can give out more records.
        """
        if not self._wanted():
            return self.force_complete()
        missing = self._limits.min_bytes
        wants_some = missing > 0
        found = failed = 0
        for hosted in self._partitions:
            if hosted.status in (Status.FAILED, Status.FENCED):
                failed += 1
                continue
            if hosted.partition.offline is not None:
                return self.force_complete()
            offset = hosted.offset_to_read()
            if offset is None or (wants_some and not hosted.has_records(offset)):
                continue
            found += 1
            if not wants_some:
                continue
            missing -= HEADER_SIZE  # no batch has less
            if missing > 0:
                try:
                    missing -= self._bytes_from(hosted, offset, missing + HEADER_SIZE) - HEADER_SIZE
                except (KafkaError, CorruptRecordError):
                    return self.force_complete()  # which reads again, and reports the error
        enough = (found and missing <= 0) or failed == len(self._partitions)
        return bool(enough) and self.force_complete()

    def _bytes_from(self, hosted: HostedSharePartition, offset: int, enough: int) -> int:
        """How many bytes there are from an offset on: it stops counting where there are enough."""
        log = hosted.partition.log
        up_to = end_offset(log, committed=hosted.settings.committed)
        counted = self._counted.get(hosted)
        if counted is None or counted.offset != offset:
            counted = _Counted(offset, offset, 0)
        while counted.size < enough and counted.following < up_to:
            data = log.read(counted.following, min(enough - counted.size, PIECE_BYTES), up_to=up_to)
            headers = list(scan_batches(data))
            if not headers:
                break
            counted = _Counted(offset, headers[-1].next_offset, counted.size + headers[-1].end)
        self._counted[hosted] = counted
        return counted.size

    def on_complete(self) -> None:
        self.reply([] if self._abandoned or not self._wanted() else self._read())

    def _read(self) -> list[FetchedPartition]:
        fetched: list[FetchedPartition] = []
        readable: list[tuple[HostedSharePartition, int]] = []
        for hosted in self._partitions:
            if hosted.status in (Status.FAILED, Status.FENCED):
                fetched.append(FetchedPartition(hosted.key, hosted.error))
            elif hosted.partition.offline is not None:
                fetched.append(FetchedPartition(hosted.key, ErrorCode.KAFKA_STORAGE_ERROR))
            elif (offset := hosted.offset_to_read()) is not None:
                readable.append((hosted, offset))
        bytes_left, records_left = self._limits.max_bytes, self._limits.max_records
        sharing = sum(hosted.has_records(offset) for hosted, offset in readable)
        first = True
        for hosted, offset in readable:
            if not hosted.has_records(offset):
                fetched.append(FetchedPartition(hosted.key))
                continue
            result = self._acquire(hosted, offset, bytes_left // max(sharing, 1), records_left, first=first)
            fetched.append(result)
            size = len(result.records)
            sharing -= 1
            bytes_left -= size
            records_left -= sum(acquired.last_offset - acquired.first_offset + 1 for acquired in result.acquired)
            first = first and not size
        return fetched

    def _acquire(
        self, hosted: HostedSharePartition, offset: int, max_bytes: int, max_records: int, *, first: bool
    ) -> FetchedPartition:
        """Reads a partition, and locks what the member is given of it: whole batches, but it skips what it hasn't."""
        if max_records <= 0 or (max_bytes <= 0 and not first):
            return FetchedPartition(hosted.key)
        try:
            batches = read_batches(
                hosted.partition.log,
                offset,
                max_bytes,
                committed=hosted.settings.committed,
                min_one=first,
                max_records=max_records,
            )
        except KafkaError as error:
            if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:  # retention was quicker: the next fetch begins after it
                return FetchedPartition(hosted.key)
            return FetchedPartition(hosted.key, error.code)
        except CorruptRecordError:
            return FetchedPartition(hosted.key, ErrorCode.CORRUPT_MESSAGE)
        acquired = hosted.acquire(
            self._member_id,
            offset,
            batches,
            max_records=max_records,
            batch_size=self._limits.batch_size,
            mode=self._limits.mode,
        )
        if not acquired:
            return FetchedPartition(hosted.key)
        records = batches.between(acquired[0].first_offset, acquired[-1].last_offset)
        return FetchedPartition(hosted.key, ErrorCode.NONE, records, acquired)
