"""How records are decompressed: here at once; a server may do it in another way, and let others in meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from kohort.protocol.records.batch import BatchHeader
from kohort.protocol.records.rows import payload_of

Expand: TypeAlias = Callable[[memoryview, BatchHeader], Generator[Any, None, bytes]]
"""Returns the records of the batch that a header was read from, decompressed; raises CorruptRecordError."""


def expand_now(data: memoryview, header: BatchHeader) -> Generator[None, None, bytes]:
    """Decompresses them at once, whatever they expand to."""
    yield
    return payload_of(data, header)
