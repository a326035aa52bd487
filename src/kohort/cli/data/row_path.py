"""Records between the client and files as rows, one after another: without Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kohort.cli.data.errors import no_separator
from kohort.cli.data.record_path import Polled
from kohort.cli.data.render_rows import render_json, text
from kohort.cli.data.row_block import RowBlock
from kohort.cli.data.source import Source
from kohort.client.types import TopicPartition

if TYPE_CHECKING:
    from kohort.client.consumer import Consumer
    from kohort.client.share_consumer import ShareConsumer

__all__ = ["block", "poll", "read_lines", "render_json", "text"]

_MOST: Final = 8192
"""Records that are rendered at once."""


async def poll(consumer: Consumer | ShareConsumer, timeout_ms: float) -> Polled | None:
    records = await consumer.poll(_MOST, timeout_ms)  # of one partition
    if not records:
        return None
    return Polled(TopicPartition(*records[0][:2]), [record.offset for record in records], records)


def read_lines(source: Source, key_separator: bytes | None) -> Iterator[RowBlock]:
    for first, block in source.line_blocks():
        lines = block.split(b"\n")
        if key_separator is None:
            yield RowBlock([*lines])
            continue
        keys: list[bytes | None] = []
        values: list[bytes | None] = []
        for line in lines:
            key, separator, value = line.partition(key_separator)
            if not separator:
                break
            keys.append(key)
            values.append(value)
        if values:
            yield RowBlock(values, keys)
        if len(values) < len(lines):
            raise no_separator(source.name, first + len(values), key_separator)


def block(rows: RowBlock) -> RowBlock:
    return rows
