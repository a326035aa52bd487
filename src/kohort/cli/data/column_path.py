"""Records between the client and files as Arrow columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from kohort.cli.data.column_block import ColumnBlock, column_block
from kohort.cli.data.read_lines import read_lines
from kohort.cli.data.record_path import Polled
from kohort.cli.data.render_json import render_json
from kohort.cli.data.render_template import text
from kohort.client.types import TopicPartition
from kohort.protocol.records.arrow import RECORD_SCHEMA

if TYPE_CHECKING:
    from kohort.cli.data.row_block import RowBlock
    from kohort.client.consumer import Consumer
    from kohort.client.share_consumer import ShareConsumer

__all__ = ["block", "poll", "read_lines", "render_json", "text"]


async def poll(consumer: Consumer | ShareConsumer, timeout_ms: float) -> Polled | None:
    batch = await consumer.poll_batch(timeout_ms)
    if batch is None or not batch.num_rows:
        return None
    partition = TopicPartition(batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
    return Polled(partition, batch.column("offset").to_numpy(), batch)


def block(rows: RowBlock) -> ColumnBlock:
    columns = {"key": rows.keys, "value": rows.values, "timestamp": rows.timestamps, "headers": rows.headers}
    return column_block(
        **{
            name: pa.array(column, RECORD_SCHEMA.field(name).type)
            for name, column in columns.items()
            if column is not None
        }
    )
