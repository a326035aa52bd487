"""Decompresses batches: small ones at once, others in a thread, one at a time.

How far a batch expands isn't known before. 4 KB may become 128 MB, which take a while and much memory.
"""

from __future__ import annotations

import asyncio
from typing import Final, Self

from kohort.broker.reply import Reply
from kohort.broker.turns import Line, Slices
from kohort.protocol.errors import CorruptRecordError
from kohort.protocol.records.batch import BatchHeader
from kohort.protocol.records.rows import ExpandsFurtherError, payload_of

AT_ONCE: Final = 1024 * 1024
"""Bytes that a batch may expand to on the event loop: about a millisecond."""


class Expansion:
    """Decompresses a batch; the records must be done with when it is closed, as the next batch may expand then."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._inside = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._inside:
            self._line.leave()

    def expand(self, data: memoryview, header: BatchHeader) -> Slices[bytes]:
        """Returns the records of a batch.

        Raises:
            CorruptRecordError: they don't decompress, or to more than `MAX_EXPANDED` bytes.
        """
        try:
            return payload_of(data, header, AT_ONCE)
        except ExpandsFurtherError:
            if not self._inside:
                yield from self._line.wait()
                self._inside = True
        expanded: Reply[bytes | CorruptRecordError] = Reply()
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, _expand, data, header).add_done_callback(lambda future: expanded(future.result()))
        yield expanded
        if isinstance(expanded.value, CorruptRecordError):
            raise expanded.value
        assert expanded.value is not None
        return expanded.value


def _expand(data: memoryview, header: BatchHeader) -> bytes | CorruptRecordError:
    try:
        return payload_of(data, header)
    except CorruptRecordError as error:
        return error
