"""Records to measure with. Their bytes are random, so that no codec makes less of them than of anybody's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from kohort.cli.data.row_block import RowBlock

if TYPE_CHECKING:
    from kohort.cli.data.record_path import Block, RecordPath

_BLOCK_BYTES: Final = 262_144
_BLOCK_RECORDS: Final = 4_096
_BLOCKS: Final = 4
_STEPS: Final = 100
"""Times a second that records leave, where their rate is limited."""


def block_records(size: int, rate: float | None) -> int:
    """How many records leave at once: as many as fit into a batch, or as come due in a hundredth of a second."""
    most = max(1, min(_BLOCK_RECORDS, _BLOCK_BYTES // max(size, 1)))
    return most if rate is None else max(1, min(most, int(rate / _STEPS)))


def blocks(path: RecordPath, size: int, records: int) -> list[Block]:
    """Some blocks of so many records of `size` bytes, to be sent one after the other, again and again."""
    made = []
    for _ in range(_BLOCKS):
        data = os.urandom(size * records)
        made.append(path.block(RowBlock([data[at * size : (at + 1) * size] for at in range(records)])))
    return made
