"""The loop of `kohort consume`: reads records, writes them, and commits offsets of what is written."""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from kohort.cli.data.pipes import Interrupter
from kohort.cli.data.progress import Progress
from kohort.cli.data.record_path import Polled, RecordPath
from kohort.cli.data.selection import Selection
from kohort.cli.data.writers import Writer
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.client.consumer import Consumer

_POLL_MS: Final = 200
_COMMIT_SECONDS: Final = 5.0
_LAST_WRITE_SECONDS: Final = 1.0
"""Time for the reader of our output to take the last batch, after the command was cancelled."""


class ConsumeLoop:
    """Reads the selected records, and writes them.

    Args:
        consumer: started, without auto commit.
        interrupter: stops a write that waits.
        group: whether the consumer is a member of a group.
        commit: whether to commit the offsets of written records.
    """

    def __init__(
        self,
        consumer: Consumer,
        path: RecordPath,
        writer: Writer,
        selection: Selection,
        interrupter: Interrupter,
        *,
        group: bool,
        commit: bool,
    ) -> None:
        self.progress = Progress()
        self._consumer = consumer
        self._path = path
        self._writer = writer
        self._selection = selection
        self._interrupter = interrupter
        self._group = group
        self._commits = commit
        self._ends: dict[TopicPartition, int] | None = None
        self._limits: dict[TopicPartition, int] = {}  # records from these offsets on are not written, or not yet
        self._assigned = not group
        self._next_commit = time.monotonic() + _COMMIT_SECONDS

    async def run(self) -> None:
        """Reads to the end of the selection; forever if it has none.

        Raises:
            OSError: records can't be written.
            ValueError: a partition doesn't exist.
            KafkaError, ClientError: records can't be read.
        """
        await self._begin()
        while not self._finished():
            polled = await self._path.poll(self._consumer, _POLL_MS)
            if polled is not None:
                await self._write(polled)
            elif self._writer.abandoned():
                raise BrokenPipeError
            if time.monotonic() >= self._next_commit:
                await self._commit(self._consumer.assignment())

    async def finish(self) -> None:
        """Closes the output, and commits what was written.

        Raises:
            OSError: it can't be written.
            CommitFailedError: the group has rebalanced; other members will read those records again.
        """
        self._writer.close()
        self._writer.readable = True
        self.progress.bytes = self._writer.written
        await self._commit(self._consumer.assignment())

    async def _begin(self) -> None:
        selection, consumer = self._selection, self._consumer
        bounded = selection.bounded or selection.end_time is not None
        partitions = await selection.find(consumer) if bounded or not self._group else []
        if bounded:
            self._ends = await selection.ends(consumer, partitions)
            self._limits = dict(self._ends)
        if self._group:
            consumer.subscribe(
                *selection.topics, pattern=selection.pattern, on_assign=self._on_assign, on_revoke=self._on_revoke
            )
            return
        starts = await selection.starts(consumer, self._path, partitions)
        consumer.assign(partitions)
        for partition, offset in starts.items():
            consumer.seek(partition, offset)

    def _finished(self) -> bool:
        if self._selection.most is not None and self.progress.records >= self._selection.most:
            return True
        if self._ends is None or not self._assigned:
            return False
        return all(self._at_end(partition) for partition in self._consumer.assignment())

    def _at_end(self, partition: TopicPartition) -> bool:
        """Whether the partition is read up to its end at the start of the command, which is 0 for a new partition."""
        assert self._ends is not None
        position = self._consumer.position(partition)
        end = self._ends.get(partition, 0)
        return end == 0 or (position is not None and position >= end)

    async def _write(self, polled: Polled) -> None:
        """Writes records of one partition, up to the end of the selection."""
        partition, offsets, records = polled
        rows = len(offsets)
        limit = self._limits.get(partition)
        if limit is not None:
            rows = bisect_left(offsets, limit)
            if int(offsets[-1]) + 1 >= limit:
                self._consumer.pause(partition)
        if self._selection.most is not None:
            rows = min(rows, self._selection.most - self.progress.records)
        if not rows:
            return
        after = limit
        if rows < len(offsets):
            after = int(offsets[rows - 1]) + 1 if limit is None else min(limit, int(offsets[rows]))

        def write() -> None:
            self._writer.write(records[:rows])
            # From here on the records count as written, even if the command is cancelled meanwhile.
            self.progress.advance(rows, self._writer.written - self.progress.bytes)
            if after is None:
                del self._limits[partition]
            else:
                self._limits[partition] = after

        self._limits[partition] = int(offsets[0])
        await self._interrupter.run(write, _LAST_WRITE_SECONDS)

    async def _commit(self, partitions: set[TopicPartition]) -> None:
        """Commits what was written of these partitions, unless the output isn't readable yet."""
        self._next_commit = time.monotonic() + _COMMIT_SECONDS
        if not self._commits or not self._writer.readable:
            return
        offsets = {}
        for partition in partitions:
            position = self._consumer.position(partition)
            if position is not None:
                offsets[partition] = min(position, self._limits.get(partition, position))
        if offsets:
            await self._consumer.commit(offsets)

    async def _on_assign(self, partitions: set[TopicPartition]) -> None:
        self._assigned = True

    async def _on_revoke(self, partitions: set[TopicPartition]) -> None:
        await self._commit(partitions)
