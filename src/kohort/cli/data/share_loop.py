"""The loop of `kohort consume --share-group`: reads records, writes them, and acknowledges what is written."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from kohort.cli.client.errors import not_found
from kohort.cli.data.pipes import Interrupter
from kohort.cli.data.progress import Progress
from kohort.cli.data.record_path import Polled, RecordPath
from kohort.cli.data.writers import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kohort.client.share_consumer import ShareConsumer
    from kohort.client.sharing.acknowledgements import AcknowledgeType

_POLL_MS: Final = 200
_IDLE_SECONDS: Final = 2.0
"""Without a record for so long, a group that has partitions has nothing to hand out."""

_LAST_WRITE_SECONDS: Final = 1.0


class ShareLoop:
    """Reads what the group hands out, and writes it.

    Args:
        consumer: started, with explicit acknowledgements.
        interrupter: stops a write that waits.
        kind: what becomes of records that are written; those that aren't are released in the end.
        bounded: whether to stop when the group has nothing more to hand out.
        most: the number of records after which to stop.
    """

    def __init__(
        self,
        consumer: ShareConsumer,
        path: RecordPath,
        writer: Writer,
        interrupter: Interrupter,
        kind: AcknowledgeType,
        *,
        bounded: bool,
        most: int | None,
    ) -> None:
        self.progress = Progress()
        self._consumer = consumer
        self._path = path
        self._writer = writer
        self._interrupter = interrupter
        self._kind = kind
        self._bounded = bounded
        self._most = most

    async def run(self, topics: Sequence[str]) -> None:
        """Reads to the end; forever if there's none.

        Raises:
            OSError: records can't be written.
            ValueError: a topic doesn't exist.
            KafkaError, ClientError: records can't be read.
        """
        for topic in topics:
            if not await self._consumer.exists(topic):
                raise ValueError(not_found("topic", topic, ()))
        self._consumer.subscribe(*topics)
        last = time.monotonic()
        while self._most is None or self.progress.records < self._most:
            polled = await self._path.poll(self._consumer, _POLL_MS)
            if polled is not None:
                await self._write(polled)
                last = time.monotonic()
            elif self._writer.abandoned():
                raise BrokenPipeError
            elif not self._consumer.assignment():
                last = time.monotonic()
            elif self._bounded and time.monotonic() - last > _IDLE_SECONDS:
                return

    async def finish(self) -> None:
        """Closes the output, and waits until the brokers know what was written.

        Raises:
            OSError: it can't be written.
            KafkaError: an acknowledgement doesn't count; the records will be handed out again.
        """
        self._writer.close()
        self.progress.bytes = self._writer.written
        for error in (await self._consumer.commit()).values():
            if error is not None:
                raise error

    async def _write(self, polled: Polled) -> None:
        from kohort.client.sharing.spans import runs

        partition, offsets, records = polled
        rows = len(offsets) if self._most is None else min(len(offsets), self._most - self.progress.records)

        def write() -> None:
            self._writer.write(records[:rows])
            # From here on the records count as written, even if the command is cancelled meanwhile.
            self.progress.advance(rows, self._writer.written - self.progress.bytes)

        before = self.progress.records
        try:
            await self._interrupter.run(write, _LAST_WRITE_SECONDS)
        finally:
            if self.progress.records > before:
                self._consumer.acknowledge((partition, runs(int(offset) for offset in offsets[:rows])), self._kind)
