"""Kafka's checkpoint files: a version, the number of rows, and rows of words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_VERSION: Final = "0"


def parse_checkpoint(text: str) -> list[list[str]]:
    """Returns the rows of a checkpoint file.

    Raises:
        ValueError: it has another version, or is truncated.
    """
    version, _, rest = text.partition("\n")
    if version.strip() != _VERSION:
        raise ValueError(f"version {version.strip()[:20]!r}, {_VERSION} is expected")
    count, *lines = rest.splitlines() or [""]
    rows = [line.split() for line in lines if line.strip()]
    if not count.strip().isdecimal() or len(rows) != int(count):
        raise ValueError(f"it should have {count[:20]!r} rows, but has {len(rows)}")
    return rows


def render_checkpoint(rows: Iterable[Iterable[str]]) -> bytes:

    lines = [" ".join(row) for row in rows]
    return "\n".join((_VERSION, str(len(lines)), *lines, "")).encode()


def parse_offsets(text: str) -> dict[tuple[str, int], int]:
    """Returns the offsets of a checkpoint file by topic and partition.

    Raises:
        ValueError: it isn't a checkpoint file of offsets.
    """
    offsets = {}
    for row in parse_checkpoint(text):
        if len(row) != 3:
            raise ValueError(f"a row of {len(row)} words; topic, partition and offset are expected")
        topic, partition, offset = row
        offsets[topic, int(partition)] = int(offset)
    return offsets


def render_offsets(offsets: Iterable[tuple[tuple[str, int], int]]) -> bytes:
    """Returns the checkpoint file of ((topic, partition), offset) pairs."""
    return render_checkpoint((topic, str(partition), str(offset)) for (topic, partition), offset in offsets)
