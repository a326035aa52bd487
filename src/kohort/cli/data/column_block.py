"""Records to send, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kohort.protocol.records.arrow import RECORD_SCHEMA

if TYPE_CHECKING:
    from kohort.cli.data.deliveries import Deliveries
    from kohort.client.producer import Producer


def column_block(**columns: pa.Array | None) -> ColumnBlock:
    """A block of these columns, without those that are None."""
    return ColumnBlock(pa.RecordBatch.from_pydict({name: each for name, each in columns.items() if each is not None}))


@dataclass(frozen=True, slots=True)
class ColumnBlock:
    """A batch as `Producer.send_table` takes it."""

    batch: pa.RecordBatch

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def __getitem__(self, rows: slice) -> ColumnBlock:
        return ColumnBlock(self.batch[rows])

    def size(self) -> int:
        lengths = [pc.binary_length(self.batch.column(name)) for name in self._names("key", "value")]
        return sum(pc.sum(column).as_py() or 0 for column in lengths)

    def with_nulls(self, marker: bytes) -> ColumnBlock:
        batch = self.batch
        for name in self._names("key", "value"):
            column = batch.column(name)
            is_null = pc.equal(column, pa.scalar(marker, column.type))
            cleared = pc.if_else(pc.fill_null(is_null, True), pa.scalar(None, column.type), column)
            batch = batch.set_column(batch.schema.names.index(name), name, cleared)
        return ColumnBlock(batch)

    def with_headers(self, headers: Sequence[tuple[str, bytes]]) -> ColumnBlock:
        column = pa.repeat(pa.scalar(list(headers), RECORD_SCHEMA.field("headers").type), len(self))
        return ColumnBlock(self.batch.drop_columns(self._names("headers")).append_column("headers", column))

    async def send(self, producer: Producer, topic: str, partition: int | None, deliveries: Deliveries) -> None:
        deliveries.append((await producer.send_table(topic, self.batch, partition=partition), len(self)))

    def _names(self, *wanted: str) -> list[str]:
        """Those of these columns that there are."""
        return [name for name in wanted if name in self.batch.schema.names]
